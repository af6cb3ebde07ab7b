/* The floor of ral: scopes, slots, signal handlers, the ladder, and the spawn.

   The problem: a request to stop must be heard while Python can't run (one long C call, a thread that holds the
   interpreter lock, a regex that never ends). CPython keeps one bit per signal and acts on it between bytecodes, so
   nothing written in Python can hear three SIGTERM during one sorted(). What stands here runs in the handler itself.

   The rules for everything that a handler reaches:
     - it touches only atomics, static memory, and a scope that a slot holds alive;
     - it takes no lock, allocates nothing, raises nothing, calls only async-signal-safe functions, and keeps errno;
     - what a slot, a table place or the terminal record gives up is let go only after quiesce(): no handler is inside.

   Order of reading: Scope (what is cancelled) - the handlers and the ladder - install - spawn - the module. */

#define PY_SSIZE_T_CLEAN
#define _GNU_SOURCE
#include <Python.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
#define NEVER INT64_MAX
#define MERGE (15 * 1000 * 1000LL) /* deliveries of one signal closer than this are one gesture */
#define RUNGS 3
#define PLACES 4096

enum { INTERRUPT = 1, EXPLICIT, DEADLINE, TERMINATE, ROOT_ABORT, CAUSES };
enum { BATCH, INTERACTIVE };

/* ------------------------------------------------------------------------------------------------------ Scope */

typedef struct Scope {
    PyObject_HEAD
    struct Scope *parent;       /* owned; written once, before anyone else can see the scope */
    struct Scope *shields;      /* owned; written once: the scope that this one shields a cleanup from */
    int beyond;                 /* causes of `shields` up to this one don't count: the cleanup began after them */
    _Atomic int64_t due;        /* what a poll reads: NEVER, 0 once cancelled, else the deadline */
    _Atomic int64_t deadline;   /* nanoseconds of CLOCK_MONOTONIC, or NEVER; whoever swaps it out may fire it */
    atomic_uchar raised[CAUSES]; /* one store per cause, never back to 0: a weaker one can't overwrite a stronger */
    atomic_int bell;            /* eventfd, or -1 until someone waits; written to by every request, read by nobody */
    int clock;                  /* timerfd, or -1; under the interpreter lock */
    int watch;                  /* epoll over the bells and clocks of the path, or -1; under the interpreter lock */
    bool edges;                 /* a shield is on the path: `watch` holds edges that say nothing */
    struct Scope *prev, *next;  /* the list of scopes that have a `watch`; under the interpreter lock */
    PyObject *weakrefs;
} Scope;

static PyTypeObject Scope_Type;
static Scope *watching; /* head of that list */
static PyObject *seam;  /* tests: called between a check and the sleep that follows it */

static int64_t
now_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * SECOND + t.tv_nsec;
}

static void
ring(Scope *s)
{
    uint64_t one = 1;
    int fd = atomic_load(&s->bell);
    if (fd >= 0 && write(fd, &one, sizeof one) < 0) {
        /* full (EAGAIN) still means readable; nothing else can happen to an eventfd of ours */
    }
}

/* Runs in handlers. The cause first, then `due`: whoever sees the scope as cancelled finds why.
   Then the bell: bell_of() stores its descriptor before it reads `due`, we store `due` before we load the descriptor,
   both sequentially consistent, so one of the two rings. */
static void
raise_cause(Scope *s, int cause)
{
    atomic_store(&s->raised[cause], 1);
    atomic_store(&s->due, 0);
    ring(s);
}

static int
own_cause(Scope *s)
{
    if (atomic_load(&s->due) == NEVER)
        return 0;
    int64_t at = atomic_load(&s->deadline);
    /* clear_deadline() may run between the load and here; only one of the two swaps the deadline out. */
    if (at != NEVER && now_of(CLOCK_MONOTONIC) >= at && atomic_compare_exchange_strong(&s->deadline, &at, NEVER))
        raise_cause(s, DEADLINE);
    for (int cause = ROOT_ABORT; cause > 0; cause--)
        if (atomic_load(&s->raised[cause]))
            return cause;
    return 0;
}

static int
cause_of(Scope *s)
{
    int strongest = 0;
    for (; s; s = s->parent) {
        int cause = own_cause(s);
        if (s->shields) {
            int outer = cause_of(s->shields);
            if (outer > s->beyond && outer > cause)
                cause = outer;
        }
        if (cause > strongest)
            strongest = cause;
    }
    return strongest;
}

/* `if scope:`, the poll of generated code: one relaxed load a level; a clock is read only where a deadline is set, and
   the coarse one lags by at most a tick, so it never fires early. */
static int
scope_bool(PyObject *self)
{
    for (Scope *s = (Scope *)self; s; s = s->parent) {
        int64_t due = atomic_load_explicit(&s->due, memory_order_relaxed);
        if (due != NEVER && (due == 0 || now_of(CLOCK_MONOTONIC_COARSE) >= due) && own_cause(s))
            return 1;
        if (s->shields && cause_of(s->shields) > s->beyond)
            return 1;
    }
    return 0;
}

static int
bell_of(Scope *s)
{
    int fd = atomic_load(&s->bell);
    if (fd < 0) {
        fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (fd < 0)
            return -1;
        atomic_store(&s->bell, fd);
        if (atomic_load(&s->due) == 0) /* a cancel that came before the bell: see raise_cause() */
            ring(s);
    }
    return fd;
}

static void
set_clock(Scope *s)
{
    int64_t at = atomic_load(&s->deadline);
    struct itimerspec t = {{0, 0}, {0, 0}};
    if (at != NEVER) { /* zero would disarm: a deadline at or before the start of the clock has passed */
        t.it_value.tv_sec = at > 0 ? at / SECOND : 0;
        t.it_value.tv_nsec = at > 0 ? at % SECOND : 1;
        if (t.it_value.tv_sec == 0 && t.it_value.tv_nsec == 0)
            t.it_value.tv_nsec = 1;
    }
    timerfd_settime(s->clock, TFD_TIMER_ABSTIME, &t, NULL);
}

static int
clock_for(Scope *s)
{
    if (s->clock < 0 && atomic_load(&s->deadline) != NEVER) {
        s->clock = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        if (s->clock < 0)
            return -1;
        set_clock(s);
    }
    return 0;
}

static int
watch_fd(int watch, int fd, uint32_t edge)
{
    struct epoll_event event = {.events = EPOLLIN | edge, .data.fd = fd};
    if (fd >= 0 && epoll_ctl(watch, EPOLL_CTL_ADD, fd, &event) < 0 && errno != EEXIST)
        return -1;
    return 0;
}

/* One flat set: epolls nest only five deep. A shielded scope is readable already, so only its next rings count. */
static int
watch_path(Scope *owner, Scope *s, uint32_t edge)
{
    for (; s; s = s->parent) {
        if (bell_of(s) < 0 || clock_for(s) < 0 || watch_fd(owner->watch, s->bell, edge) < 0 ||
            watch_fd(owner->watch, s->clock, edge) < 0)
            return -1;
        if (s->shields) {
            owner->edges = true;
            if (watch_path(owner, s->shields, EPOLLET) < 0)
                return -1;
        }
    }
    return 0;
}

/* Throws away edges that said nothing new. A cancel may land between the check and the drain, and then the drain ate
   the edge that told of it: so look again, and ring a bell that stays. */
static void
drain_edges(Scope *s)
{
    struct epoll_event events[16];
    if (!s->edges || cause_of(s))
        return;
    while (epoll_wait(s->watch, events, 16, 0) == 16) {
    }
    if (cause_of(s))
        ring(s);
}

static int
watch_of(Scope *s)
{
    if (s->watch < 0) {
        s->watch = epoll_create1(EPOLL_CLOEXEC);
        if (s->watch < 0)
            return -1;
        if (watch_path(s, s, 0) < 0) {
            int error = errno;
            close(s->watch);
            s->watch = -1;
            errno = error;
            return -1;
        }
        s->next = watching;
        if (watching)
            watching->prev = s;
        watching = s;
    }
    drain_edges(s);
    return s->watch;
}

static PyObject *
scope_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"parent", "shields", NULL};
    PyObject *parent = Py_None, *shields = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$O:Scope", names, &parent, &shields))
        return NULL;
    if ((parent != Py_None && !PyObject_TypeCheck(parent, &Scope_Type)) ||
        (shields != Py_None && !PyObject_TypeCheck(shields, &Scope_Type))) {
        PyErr_SetString(PyExc_TypeError, "expected a Scope or None");
        return NULL;
    }
    if (parent != Py_None && shields != Py_None) {
        PyErr_SetString(PyExc_TypeError, "a shield has no parent");
        return NULL;
    }
    Scope *s = (Scope *)type->tp_alloc(type, 0);
    if (!s)
        return NULL;
    s->parent = parent == Py_None ? NULL : (Scope *)Py_NewRef(parent);
    s->shields = shields == Py_None ? NULL : (Scope *)Py_NewRef(shields);
    s->beyond = s->shields ? cause_of(s->shields) : 0;
    atomic_init(&s->due, NEVER);
    atomic_init(&s->deadline, NEVER);
    atomic_init(&s->bell, -1);
    s->clock = s->watch = -1;
    return (PyObject *)s;
}

static int
scope_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((Scope *)self)->parent);
    Py_VISIT(((Scope *)self)->shields);
    return 0; /* no tp_clear: both are written once, so a cycle always has a dict in it that can be cleared */
}

/* No handler can be at work on this scope: a slot owns a reference, and swap() waited for the handlers. */
static void
scope_dealloc(PyObject *self)
{
    Scope *s = (Scope *)self;
    PyObject_GC_UnTrack(self);
    Py_TRASHCAN_BEGIN(self, scope_dealloc) /* a long chain of parents must not recurse in C */
    if (s->weakrefs)
        PyObject_ClearWeakRefs(self);
    if (s->watch >= 0) {
        if (s->prev)
            s->prev->next = s->next;
        else
            watching = s->next;
        if (s->next)
            s->next->prev = s->prev;
        close(s->watch);
    }
    if (s->clock >= 0)
        close(s->clock);
    if (s->bell >= 0)
        close(s->bell);
    Py_XDECREF(s->parent);
    Py_XDECREF(s->shields);
    Py_TYPE(self)->tp_free(self);
    Py_TRASHCAN_END
}

static PyObject *
scope_cause(PyObject *self, PyObject *Py_UNUSED(none))
{
    return PyLong_FromLong(cause_of((Scope *)self));
}

static PyObject *
scope_own_cause(PyObject *self, PyObject *Py_UNUSED(none))
{
    return PyLong_FromLong(own_cause((Scope *)self));
}

static int
cause_arg(PyObject *arg)
{
    long cause = PyLong_AsLong(arg);
    if (cause == -1 && PyErr_Occurred())
        return -1;
    if (cause < INTERRUPT || cause > ROOT_ABORT) {
        PyErr_SetString(PyExc_ValueError, "a cause is a number from 1 to 5");
        return -1;
    }
    return (int)cause;
}

static PyObject *
scope_cancel(PyObject *self, PyObject *arg)
{
    int cause = cause_arg(arg);
    if (cause < 0)
        return NULL;
    raise_cause((Scope *)self, cause);
    Py_RETURN_NONE;
}

static PyObject *
scope_fileno(PyObject *self, PyObject *Py_UNUSED(none))
{
    int fd = watch_of((Scope *)self);
    return fd < 0 ? PyErr_SetFromErrno(PyExc_OSError) : PyLong_FromLong(fd);
}

static int
call_seam(void)
{
    if (!seam)
        return 0;
    PyObject *result = PyObject_CallNoArgs(seam);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

static PyObject *
scope_wait(PyObject *self, PyObject *timeout)
{
    Scope *s = (Scope *)self;
    int64_t end = NEVER;
    if (timeout != Py_None) {
        double seconds = PyFloat_AsDouble(timeout);
        if (seconds == -1 && PyErr_Occurred())
            return NULL;
        if (seconds < 9e9)
            end = now_of(CLOCK_MONOTONIC) + (int64_t)(seconds * SECOND);
    }
    for (;;) {
        /* The bell stays rung, so a cancel between this check and the sleep ends the sleep at once. */
        int fd = watch_of(s), cause = cause_of(s);
        if (cause)
            return PyLong_FromLong(cause);
        if (fd < 0)
            return PyErr_SetFromErrno(PyExc_OSError);
        int64_t left = end == NEVER ? 0 : end - now_of(CLOCK_MONOTONIC);
        if (left < 0 || (left == 0 && end != NEVER))
            return PyLong_FromLong(0);
        if (call_seam() < 0)
            return NULL;
        struct pollfd sleep = {.fd = fd, .events = POLLIN};
        struct timespec t = {left / SECOND, left % SECOND};
        int ready;
        Py_BEGIN_ALLOW_THREADS
        ready = ppoll(&sleep, 1, end == NEVER ? NULL : &t, NULL);
        Py_END_ALLOW_THREADS
        if (ready < 0 && (errno != EINTR || PyErr_CheckSignals() < 0))
            return PyErr_Occurred() ? NULL : PyErr_SetFromErrno(PyExc_OSError);
    }
}

static int
change_deadline(Scope *s, int64_t at)
{
    atomic_store(&s->deadline, at);
    int64_t due = atomic_load(&s->due);
    while (due != 0 && !atomic_compare_exchange_weak(&s->due, &due, at)) {
        /* `due` stays 0 once a cancel put it there */
    }
    if (s->clock >= 0) {
        set_clock(s);
    } else if (at != NEVER && s->bell >= 0) { /* someone may sleep already: give those below us the new clock */
        for (Scope *w = watching; w; w = w->next)
            if (watch_path(w, w, 0) < 0)
                return -1;
    }
    return 0;
}

static PyObject *
scope_set_deadline(PyObject *self, PyObject *arg)
{
    double seconds = PyFloat_AsDouble(arg);
    if (seconds == -1 && PyErr_Occurred())
        return NULL;
    int64_t at = seconds >= 9e9 ? NEVER : seconds <= 0 ? 1 : (int64_t)(seconds * SECOND);
    if (change_deadline((Scope *)self, at) < 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    Py_RETURN_NONE;
}

static PyObject *
scope_clear_deadline(PyObject *self, PyObject *Py_UNUSED(none))
{
    change_deadline((Scope *)self, NEVER);
    Py_RETURN_NONE;
}

static PyObject *
scope_parent(PyObject *self, void *Py_UNUSED(closure))
{
    Scope *parent = ((Scope *)self)->parent;
    return Py_NewRef(parent ? (PyObject *)parent : Py_None);
}

static PyObject *
scope_child(PyObject *self, PyObject *Py_UNUSED(none))
{
    return PyObject_CallOneArg((PyObject *)&Scope_Type, self);
}

static PyMethodDef scope_methods[] = {
    {"child", scope_child, METH_NOARGS, "A plain scope below this one."},
    {"cause", scope_cause, METH_NOARGS, "The strongest cause on the path to the root, 0 for none."},
    {"own_cause", scope_own_cause, METH_NOARGS, "The strongest cause of this scope alone, 0 for none."},
    {"cancel", scope_cancel, METH_O, "Raise a cause, 1 to 5: one-way, idempotent, lock-free."},
    {"fileno", scope_fileno, METH_NOARGS, "A descriptor that is readable while the scope is cancelled."},
    {"wait", scope_wait, METH_O, "Sleep until cancelled or for that many seconds (None: for ever); the cause or 0."},
    {"set_deadline", scope_set_deadline, METH_O, "Raise DEADLINE when time.monotonic() passes this."},
    {"clear_deadline", scope_clear_deadline, METH_NOARGS, "Stop the clock: no DEADLINE from it after this."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef scope_getset[] = {{"parent", scope_parent, NULL, NULL, NULL}, {NULL, NULL, NULL, NULL, NULL}};
static PyNumberMethods scope_number = {.nb_bool = scope_bool};

static PyTypeObject Scope_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "ral._floor.Scope",
    .tp_doc = "What can be cancelled: Scope(parent=None, *, shields=None). True once it or an ancestor is cancelled.",
    .tp_basicsize = sizeof(Scope),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = scope_new,
    .tp_dealloc = scope_dealloc,
    .tp_traverse = scope_traverse,
    .tp_weaklistoffset = offsetof(Scope, weakrefs),
    .tp_methods = scope_methods,
    .tp_getset = scope_getset,
    .tp_as_number = &scope_number,
};

/* ------------------------------------------------------------------------- what the handlers reach, and the ladder */

static _Atomic(Scope *) foreground, root; /* each owns a reference */
static atomic_int inside;                 /* handlers at work, on any thread */
static atomic_int ladder;                 /* termination gestures since the last acknowledgement */
static atomic_int gestures[CAUSES];
static _Atomic int64_t last_seen[NSIG];
static atomic_int groups[PLACES]; /* live process groups; 0 free, -1 promised to a spawn that is under way */
static atomic_int doomed;         /* the ladder has fallen: a child that sees this before its exec leaves */
static atomic_int child_bell = -1; /* eventfd of SIGCHLD; read by nobody, watched edge-triggered */
static atomic_int interruptible;  /* the main thread is in a primitive that Python's own handler may break off */
static atomic_int mode = BATCH;
static uint64_t ignored; /* bit n: signal n was ignored when ral started */

typedef struct {
    int fd;
    pid_t pgid;
    bool has_modes;
    struct termios modes;
} Terminal;
static Terminal terminals[2];
static _Atomic(Terminal *) terminal; /* what the ladder gives back, or NULL; the other record is free to write */

/* Waits until no handler is at work, so that what was just unpublished may be freed, reused or reaped. A handler on
   this thread has ended before we go on; one on another thread is short; the ladder's last never ends, and then
   neither do we: the process is about to. Sequential consistency makes it sound: a handler counts itself in, then
   loads; we unpublish, then load the count. */
static void
quiesce(void)
{
    while (atomic_load(&inside))
        sched_yield();
}

static void
signal_groups(int sig)
{
    for (int i = 0; i < PLACES; i++) {
        pid_t group = atomic_load_explicit(&groups[i], memory_order_seq_cst);
        if (group > 1)
            kill(-group, sig);
    }
}

/* The third gesture. `doomed` goes up before the table is read, and a newborn enters the table before it reads
   `doomed`: so it is either killed here or leaves by itself. All signals are blocked here, SIGTTOU among them, which
   would stop us as we hand the terminal back from the background. */
static void
fall(int sig)
{
    atomic_store(&doomed, 1);
    signal_groups(SIGKILL);
    Terminal *t = atomic_load(&terminal);
    if (t) {
        tcsetpgrp(t->fd, t->pgid);
        if (t->has_modes)
            tcsetattr(t->fd, TCSANOW, &t->modes);
    }
    _exit(128 + sig);
}

static void
on_gesture(int sig)
{
    int saved = errno;
    int cause = sig == SIGINT ? INTERRUPT : sig == SIGQUIT ? ROOT_ABORT : TERMINATE;
    bool walks = cause == TERMINATE || (sig == SIGINT && atomic_load(&mode) == BATCH);
    atomic_fetch_add(&inside, 1); /* from here to the end, nobody frees what the slots show us */
    Scope *here = atomic_load(&foreground);
    Scope *target = cause == INTERRUPT ? here : atomic_load(&root);
    if (cause == TERMINATE || here) { /* SIGINT and SIGQUIT touch nothing at an idle prompt */
        int64_t now = now_of(CLOCK_MONOTONIC);
        /* Two threads may handle one signal at once: each swaps its own time in, so one gesture is counted once. */
        if (now - atomic_exchange(&last_seen[sig], now) >= MERGE) {
            atomic_fetch_add(&gestures[cause], 1);
            if (walks && atomic_fetch_add(&ladder, 1) + 1 >= RUNGS)
                fall(sig);
        }
        if (target)
            raise_cause(target, cause);
        if (atomic_load(&interruptible))
            PyErr_SetInterruptEx(sig); /* async-signal-safe by its documentation */
    }
    atomic_fetch_sub(&inside, 1);
    errno = saved;
}

static void
on_child(int Py_UNUSED(sig))
{
    int saved = errno;
    uint64_t one = 1;
    if (write(atomic_load(&child_bell), &one, sizeof one) < 0) {
        /* full is readable too */
    }
    errno = saved;
}

/* Batch: stop the groups, then ourselves in the usual way, so that the shell above sees a stop by SIGTSTP. Where the
   kernel refuses (an orphaned group), we come straight back and the groups go on. `inside` is not held while stopped. */
static void
on_stop(int sig)
{
    int saved = errno;
    struct sigaction usual = {.sa_handler = SIG_DFL}, ours;
    sigset_t this, before;
    atomic_fetch_add(&inside, 1);
    signal_groups(SIGSTOP);
    atomic_fetch_sub(&inside, 1);
    sigaction(sig, &usual, &ours);
    sigemptyset(&this);
    sigaddset(&this, sig);
    raise(sig); /* blocked while its handler runs, so it stays pending for this thread */
    pthread_sigmask(SIG_UNBLOCK, &this, &before); /* here we stop, and here SIGCONT wakes us */
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    sigaction(sig, &ours, NULL);
    atomic_fetch_add(&inside, 1);
    signal_groups(SIGCONT);
    atomic_fetch_sub(&inside, 1);
    errno = saved;
}

/* A forked process owns none of its parent's groups, and no handler is at work in it. */
static void
forked(void)
{
    for (int i = 0; i < PLACES; i++)
        atomic_store(&groups[i], 0);
    atomic_store(&foreground, NULL);
    atomic_store(&root, NULL);
    atomic_store(&terminal, NULL);
    atomic_store(&inside, 0);
}

/* -------------------------------------------------------------------------------------------------- installation */

static bool
was_ignored(int sig)
{
    return ignored >> sig & 1;
}

/* What was ignored at the start and stays so, in ral and in its children: nohup's SIGHUP always, a background job's
   SIGINT and SIGQUIT in batch, SIGTERM never. */
static bool
stays_ignored(int sig)
{
    return was_ignored(sig) && (sig == SIGHUP || (atomic_load(&mode) == BATCH && (sig == SIGINT || sig == SIGQUIT)));
}

static void
handle(int sig, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART | SA_ONSTACK};
    sigfillset(&action.sa_mask);
    sigaction(sig, &action, NULL);
}

static PyObject *
floor_sigchld_fd(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    if (atomic_load(&child_bell) < 0) {
        int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (fd < 0)
            return PyErr_SetFromErrno(PyExc_OSError);
        atomic_store(&child_bell, fd);
    }
    return PyLong_FromLong(child_bell);
}

static PyObject *
floor_install(PyObject *module, PyObject *arg)
{
    static const int asks[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    long wanted = PyLong_AsLong(arg);
    if (wanted == -1 && PyErr_Occurred())
        return NULL;
    PyObject *bell = floor_sigchld_fd(module, NULL); /* before the handler that writes to it */
    if (!bell)
        return NULL;
    Py_DECREF(bell);
    atomic_store(&mode, wanted ? INTERACTIVE : BATCH);
    sigset_t four;
    sigemptyset(&four);
    for (size_t i = 0; i < sizeof asks / sizeof *asks; i++) {
        handle(asks[i], stays_ignored(asks[i]) ? SIG_IGN : on_gesture);
        sigaddset(&four, asks[i]);
    }
    handle(SIGCHLD, on_child);
    if (wanted) {
        handle(SIGTSTP, SIG_IGN);
        handle(SIGTTIN, SIG_IGN);
        handle(SIGTTOU, SIG_IGN);
    } else if (!was_ignored(SIGTSTP)) {
        handle(SIGTSTP, on_stop);
    }
    pthread_sigmask(SIG_UNBLOCK, &four, NULL); /* the launcher blocked them: what came meanwhile is heard now */
    Py_RETURN_NONE;
}

/* --------------------------------------------------------------------------------------------------------- spawn */

typedef struct {
    const char *path, *cwd;
    char **argv, **envp;
    int fds[3];
    int pgid;
    atomic_int *place; /* of a new group, else NULL */
    Scope *scope;
    int error;         /* errno of the step that failed, seen by the parent through the shared memory */
    bool in_cwd, cancelled;
} Birth;

/* The child of vfork: it runs in the parent's memory on the parent's stack while that thread is suspended, with every
   signal blocked. It must not return, allocate or take a lock, and must not let a handler of ours run: dispositions
   come before the mask. The parent needs no setpgid of its own: it goes on only after our exec. */
static _Noreturn void
be_born(Birth *b)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigset_t none;
    int source[3];
    if (setpgid(0, b->pgid) < 0)
        goto failed;
    if (b->place)
        atomic_store(b->place, getpid());
    if (atomic_load(&doomed)) /* a third gesture on another thread read the table before we were in it: see fall() */
        _exit(128 + SIGKILL);
    if (b->cwd[0] && chdir(b->cwd) < 0) {
        b->in_cwd = true;
        goto failed;
    }
    for (int i = 0; i < 3; i++) { /* out of the way first: a source may be another's target */
        source[i] = b->fds[i];
        if (source[i] >= 0 && source[i] < 3 && source[i] != i && (source[i] = fcntl(source[i], F_DUPFD_CLOEXEC, 3)) < 0)
            goto failed;
    }
    for (int i = 0; i < 3; i++) {
        if (source[i] < 0)
            close(i);
        else if (source[i] == i ? fcntl(i, F_SETFD, 0) < 0 : dup2(source[i], i) < 0)
            goto failed;
    }
    for (int sig = 1; sig < NSIG; sig++) {
        action.sa_handler = stays_ignored(sig) ? SIG_IGN : SIG_DFL;
        sigaction(sig, &action, NULL);
    }
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    if (b->scope && cause_of(b->scope)) { /* the last check: a cancel that comes after it finds us in the table */
        b->cancelled = true;
        _exit(127);
    }
    execve(b->path, b->argv, b->envp);
failed:
    b->error = errno;
    _exit(127);
}

static __attribute__((noinline)) pid_t
give_birth(Birth *b)
{
    pid_t pid = vfork();
    if (pid == 0)
        be_born(b);
    return pid;
}

static atomic_int *
reserve_place(void)
{
    for (int i = 0; i < PLACES; i++) {
        int empty = 0;
        if (atomic_compare_exchange_strong(&groups[i], &empty, -1))
            return &groups[i];
    }
    return NULL;
}

static char **
strings(PyObject *list, PyObject **keep)
{
    *keep = PySequence_Tuple(list); /* our own references: with the lock released, others may change the list */
    if (!*keep)
        return NULL;
    Py_ssize_t n = PyTuple_GET_SIZE(*keep);
    char **out = PyMem_Calloc((size_t)n + 1, sizeof *out);
    if (!out)
        return (char **)PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < n; i++)
        if (PyBytes_AsStringAndSize(PyTuple_GET_ITEM(*keep, i), &out[i], NULL) < 0) { /* refuses NUL bytes too */
            PyMem_Free(out);
            return NULL;
        }
    return out;
}

static PyObject *
floor_spawn(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *path, *argv, *env, *cwd, *scope, *keep_argv = NULL, *keep_env = NULL, *result = NULL;
    Birth b = {0};
    if (!PyArg_ParseTuple(args, "SOOS(iii)iO:spawn", &path, &argv, &env, &cwd, &b.fds[0], &b.fds[1], &b.fds[2], &b.pgid,
                          &scope))
        return NULL;
    if (scope != Py_None && !PyObject_TypeCheck(scope, &Scope_Type)) {
        PyErr_SetString(PyExc_TypeError, "expected a Scope or None");
        return NULL;
    }
    b.scope = scope == Py_None ? NULL : (Scope *)scope;
    b.path = PyBytes_AS_STRING(path);
    b.cwd = PyBytes_AS_STRING(cwd);
    b.argv = strings(argv, &keep_argv);
    b.envp = b.argv ? strings(env, &keep_env) : NULL;
    if (!b.envp)
        goto done;
    if (b.scope && cause_of(b.scope)) {
        result = Py_BuildValue("ii", 0, -1);
        goto done;
    }
    if (b.pgid == 0 && !(b.place = reserve_place())) {
        errno = EAGAIN; /* the table of live groups is full */
        PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, path);
        goto done;
    }
    pid_t pid;
    int pidfd = -1, error = 0;
    Py_BEGIN_ALLOW_THREADS
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid = give_birth(&b);
    error = pid < 0 ? errno : b.error;
    if (pid > 0 && !error && !b.cancelled) {
        pidfd = (int)syscall(SYS_pidfd_open, pid, 0); /* ours until we reap it, so the number is still the child's */
        if (pidfd < 0 && errno != ENOSYS) {           /* no descriptor left: a child that can't be watched must go */
            error = errno;
            kill(pid, SIGKILL);
        }
    }
    if (error || b.cancelled) {
        if (b.place) {
            atomic_store(b.place, 0); /* out of the table before the number is free again */
            quiesce();
        }
        while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    Py_END_ALLOW_THREADS
    if (error) {
        errno = error;
        PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, b.in_cwd ? cwd : path);
    } else {
        result = b.cancelled ? Py_BuildValue("ii", 0, -1) : Py_BuildValue("ii", (int)pid, pidfd);
    }
done:
    PyMem_Free(b.argv);
    PyMem_Free(b.envp);
    Py_XDECREF(keep_argv);
    Py_XDECREF(keep_env);
    return result;
}

static PyObject *
floor_group_leave(PyObject *Py_UNUSED(module), PyObject *arg)
{
    long pgid = PyLong_AsLong(arg);
    if (pgid == -1 && PyErr_Occurred())
        return NULL;
    for (int i = 0; i < PLACES && pgid > 1; i++)
        if (atomic_load(&groups[i]) == pgid) {
            atomic_store(&groups[i], 0);
            quiesce(); /* the caller reaps the leader next, and the kernel may give its number to anyone */
            break;
        }
    Py_RETURN_NONE;
}

static PyObject *
floor_groups(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < PLACES; i++) {
        int pgid = atomic_load(&groups[i]);
        PyObject *number = pgid > 1 ? PyLong_FromLong(pgid) : NULL;
        if (number && PyList_Append(list, number) < 0)
            Py_CLEAR(list);
        Py_XDECREF(number);
    }
    return list;
}

/* -------------------------------------------------------------------------------------------------------- module */

static PyObject *
floor_flag(PyObject *Py_UNUSED(module), PyObject *scope)
{
    return Py_NewRef(scope);
}

static PyObject *
floor_acknowledge(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    atomic_store(&ladder, 0);
    Py_RETURN_NONE;
}

static PyObject *
floor_escalation_pending(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return PyLong_FromLong(atomic_load(&ladder));
}

static PyObject *
floor_gestures(PyObject *Py_UNUSED(module), PyObject *arg)
{
    int cause = cause_arg(arg);
    return cause < 0 ? NULL : PyLong_FromLong(atomic_load(&gestures[cause]));
}

/* The slot's reference moves to the caller, after no handler can be looking at the scope any more. */
static PyObject *
swap(_Atomic(Scope *) *slot, PyObject *arg)
{
    if (arg != Py_None && !PyObject_TypeCheck(arg, &Scope_Type)) {
        PyErr_SetString(PyExc_TypeError, "expected a Scope or None");
        return NULL;
    }
    Scope *old = atomic_exchange(slot, arg == Py_None ? NULL : (Scope *)Py_NewRef(arg));
    quiesce();
    return old ? (PyObject *)old : Py_NewRef(Py_None);
}

static PyObject *
floor_swap_foreground(PyObject *Py_UNUSED(module), PyObject *arg)
{
    return swap(&foreground, arg);
}

static PyObject *
floor_swap_root(PyObject *Py_UNUSED(module), PyObject *arg)
{
    return swap(&root, arg);
}

static PyObject *
request(_Atomic(Scope *) *slot, PyObject *arg)
{
    int cause = cause_arg(arg);
    if (cause < 0)
        return NULL;
    atomic_fetch_add(&inside, 1); /* an embedder's thread is no safer than a handler */
    Scope *s = atomic_load(slot);
    if (s)
        raise_cause(s, cause);
    atomic_fetch_sub(&inside, 1);
    Py_RETURN_NONE;
}

static PyObject *
floor_request_foreground_cancel(PyObject *Py_UNUSED(module), PyObject *arg)
{
    return request(&foreground, arg);
}

static PyObject *
floor_request_root_cancel(PyObject *Py_UNUSED(module), PyObject *arg)
{
    return request(&root, arg);
}

static PyObject *
floor_ignored_at_start(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    PyObject *set = PyFrozenSet_New(NULL);
    for (int sig = 1; set && sig < NSIG && sig < 64; sig++) {
        PyObject *number = was_ignored(sig) ? PyLong_FromLong(sig) : NULL;
        if (number && PySet_Add(set, number) < 0)
            Py_CLEAR(set);
        Py_XDECREF(number);
    }
    return set;
}

/* modes: what termios.tcgetattr() returns, or None. */
static bool
read_modes(PyObject *modes, struct termios *out)
{
    unsigned int in[6];
    PyObject *characters;
    PyObject *tuple = PySequence_Tuple(modes);
    bool fine = tuple && PyArg_ParseTuple(tuple, "IIIIIIO!", &in[0], &in[1], &in[2], &in[3], &in[4], &in[5], &PyList_Type,
                                          &characters);
    if (fine) {
        out->c_iflag = in[0];
        out->c_oflag = in[1];
        out->c_cflag = in[2];
        out->c_lflag = in[3];
        cfsetispeed(out, in[4]);
        cfsetospeed(out, in[5]);
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(characters) && i < NCCS; i++) {
            PyObject *item = PyList_GET_ITEM(characters, i);
            if (PyBytes_Check(item) && PyBytes_GET_SIZE(item) == 1)
                out->c_cc[i] = (cc_t)PyBytes_AS_STRING(item)[0];
            else
                out->c_cc[i] = (cc_t)PyLong_AsLong(item);
        }
        fine = !PyErr_Occurred();
    }
    Py_XDECREF(tuple);
    return fine;
}

static PyObject *
floor_set_terminal(PyObject *Py_UNUSED(module), PyObject *args)
{
    int fd, pgid;
    PyObject *modes = Py_None;
    if (!PyArg_ParseTuple(args, "ii|O:set_terminal", &fd, &pgid, &modes))
        return NULL;
    Terminal *next = atomic_load(&terminal) == &terminals[0] ? &terminals[1] : &terminals[0];
    *next = (Terminal){.fd = fd, .pgid = pgid, .has_modes = modes != Py_None};
    if (next->has_modes && !read_modes(modes, &next->modes))
        return NULL;
    atomic_store(&terminal, next);
    quiesce(); /* the other record is free again only now */
    Py_RETURN_NONE;
}

static PyObject *
floor_clear_terminal(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    atomic_store(&terminal, NULL);
    quiesce();
    Py_RETURN_NONE;
}

static PyObject *
floor_set_interruptible(PyObject *Py_UNUSED(module), PyObject *hook)
{
    atomic_store(&interruptible, hook != Py_None); /* who calls the hook is Python's own handler: see the door */
    Py_RETURN_NONE;
}

static PyObject *
floor_wakeup_fd(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return PyLong_FromLong(-1); /* our handlers ring the scopes themselves */
}

static PyObject *
floor_subreaper(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return PyBool_FromLong(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
}

static PyObject *
floor_set_seam(PyObject *Py_UNUSED(module), PyObject *hook)
{
    Py_XSETREF(seam, hook == Py_None ? NULL : Py_NewRef(hook));
    Py_RETURN_NONE;
}

static PyObject *
floor_at_seam(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    if (call_seam() < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef floor_methods[] = {
    {"flag", floor_flag, METH_O, "What generated code tests for this scope: the scope itself."},
    {"acknowledge", floor_acknowledge, METH_NOARGS, "Clear the ladder's count."},
    {"escalation_pending", floor_escalation_pending, METH_NOARGS, "The ladder's count, to show."},
    {"gestures", floor_gestures, METH_O, "Gestures that raised this cause, since the start."},
    {"swap_foreground", floor_swap_foreground, METH_O, "Fill the foreground slot; what was in it."},
    {"swap_root", floor_swap_root, METH_O, "Fill the root slot; what was in it."},
    {"request_foreground_cancel", floor_request_foreground_cancel, METH_O, "Cancel what the foreground slot holds."},
    {"request_root_cancel", floor_request_root_cancel, METH_O, "Cancel what the root slot holds."},
    {"install", floor_install, METH_O, "Install the handlers (0 batch, 1 interactive) and unblock their signals."},
    {"ignored_at_start", floor_ignored_at_start, METH_NOARGS, "Signals that were ignored when ral started."},
    {"sigchld_fd", floor_sigchld_fd, METH_NOARGS, "A descriptor that SIGCHLD writes; watch it edge-triggered."},
    {"set_terminal", floor_set_terminal, METH_VARARGS, "(fd, pgid, modes): what the ladder's third gives back."},
    {"clear_terminal", floor_clear_terminal, METH_NOARGS, "The ladder has no terminal to give back."},
    {"spawn", floor_spawn, METH_VARARGS, "(path, argv, env, cwd, fds, pgid, scope) -> (pid, pidfd), (0, -1) if cancelled."},
    {"group_leave", floor_group_leave, METH_O, "Take a group out of the table, before its leader is reaped."},
    {"groups", floor_groups, METH_NOARGS, "The groups in the table."},
    {"set_interruptible", floor_set_interruptible, METH_O, "A hook: gestures wake Python's own handlers too. None: they don't."},
    {"wakeup_fd", floor_wakeup_fd, METH_NOARGS, "What the main thread's sleeps watch besides; -1 here."},
    {"subreaper", floor_subreaper, METH_NOARGS, "Become the parent of orphaned descendants; whether it worked."},
    {"set_seam", floor_set_seam, METH_O, "Tests: what to call between a check and its sleep."},
    {"at_seam", floor_at_seam, METH_NOARGS, "Call it."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef floor_module = {
    PyModuleDef_HEAD_INIT, .m_name = "ral._floor", .m_doc = "Scopes, handlers, ladder, spawn.", .m_size = -1, .m_methods = floor_methods};

PyMODINIT_FUNC
PyInit__floor(void)
{
    struct sigaction found;
    for (int sig = 1; sig < NSIG && sig < 64; sig++) {
        atomic_init(&last_seen[sig], -NEVER / 2);
        if (sig != SIGPIPE && sig != SIGXFSZ && sigaction(sig, NULL, &found) == 0 && found.sa_handler == SIG_IGN)
            ignored |= (uint64_t)1 << sig; /* Python itself ignores those two */
    }
    pthread_atfork(NULL, NULL, forked);
    PyObject *module = PyType_Ready(&Scope_Type) < 0 ? NULL : PyModule_Create(&floor_module);
    if (module && (PyModule_AddObjectRef(module, "Scope", (PyObject *)&Scope_Type) < 0 ||
                   PyModule_AddStringConstant(module, "KIND", "c") < 0))
        Py_CLEAR(module);
    return module;
}
