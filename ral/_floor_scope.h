/* Scopes: what can be cancelled, polled and slept on. Part of _floor.c, which includes it first.

   raise_cause() is what a handler does to a scope; everything else here runs under the interpreter lock. */

enum { INTERRUPT = 1, EXPLICIT, DEADLINE, TERMINATE, ROOT_ABORT, CAUSES };

typedef struct Scope {
    PyObject_HEAD
    struct Scope *parent;       /* owned; written once, before anyone else can see the scope */
    struct Scope *shields;      /* owned; written once: the scope that this one shields a cleanup from */
    int beyond;                 /* causes of `shields` up to this one don't count: the cleanup began after them */
    int seen;                   /* a shield: gestures of that cause so far, -1 once one more has come */
    int64_t grace;              /* a shield: nanoseconds left after one more gesture of that cause */
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
static atomic_int gestures[CAUSES]; /* deliveries that raised each cause, since the start; the handlers count */
static Scope *watching; /* head of that list */
static atomic_int stirred; /* living scopes whose `due` is not NEVER: while it is 0, no poll has anything to find */
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
    if (atomic_exchange(&s->due, 0) == NEVER)
        atomic_fetch_add(&stirred, 1); /* a poll between the two lines misses it; the next one doesn't */
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

static int change_deadline(Scope *s, int64_t at);

/* A shield that hears its own cause once more leaves its cleanup the grace. Under the interpreter lock, unlike cause_of(),
   which a newborn child asks too. */
static void
hasten(Scope *s)
{
    for (; s; s = s->parent) {
        if (!s->shields || s->seen < 0 || atomic_load(&gestures[s->beyond]) <= s->seen)
            continue;
        s->seen = -1;
        int64_t at = now_of(CLOCK_MONOTONIC) + s->grace;
        if (at < atomic_load(&s->deadline))
            change_deadline(s, at);
    }
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

/* `if scope:`, the poll of generated code: one load while all is quiet, else one a level; a clock is read only where a
   deadline is set, and the coarse one lags by at most a tick, so it never fires early. */
static int
scope_bool(PyObject *self)
{
    if (atomic_load_explicit(&stirred, memory_order_relaxed) == 0)
        return 0;
    hasten((Scope *)self);
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
    static char *names[] = {"parent", "shields", "grace", NULL};
    PyObject *parent = Py_None, *shields = Py_None;
    double grace = 0.5;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$Od:Scope", names, &parent, &shields, &grace))
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
    s->seen = s->shields ? atomic_load(&gestures[s->beyond]) : -1;
    s->grace = grace < 0 ? 0 : grace > 1e9 ? NEVER / 2 : (int64_t)(grace * SECOND);
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
    if (atomic_load(&s->due) != NEVER)
        atomic_fetch_sub(&stirred, 1);
    Py_XDECREF(s->parent);
    Py_XDECREF(s->shields);
    Py_TYPE(self)->tp_free(self);
    Py_TRASHCAN_END
}

static PyObject *
scope_cause(PyObject *self, PyObject *Py_UNUSED(none))
{
    hasten((Scope *)self);
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
        hasten(s);
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
    if (due != 0 && (due == NEVER) != (at == NEVER))
        atomic_fetch_add(&stirred, at == NEVER ? -1 : 1);
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
