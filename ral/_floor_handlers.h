/* The handlers, what they reach, the ladder, and their installation. Part of _floor.c, after the scopes.

   The rules for everything that a handler reaches:
     - it touches only atomics, static memory, and a scope that a slot holds alive;
     - it takes no lock, allocates nothing, raises nothing, calls only async-signal-safe functions, and keeps errno;
     - what a slot, a table place or the terminal record gives up is let go only after quiesce(): no handler is inside. */

enum { BATCH, INTERACTIVE };

static _Atomic(Scope *) foreground, root; /* each owns a reference */
static atomic_int inside;                 /* handlers at work, on any thread */
static atomic_int ladder;                 /* termination gestures since the last acknowledgement */
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
