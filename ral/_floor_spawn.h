/* The spawn: vfork, a group of its own, its directory, an empty mask, default dispositions, and a place in the table of
   groups before anyone could miss it. Part of _floor.c, after the handlers. */

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
    /* A key of the terminal that fell before our setpgid went to ral's group with us in it, and waits behind the mask: it
       was ral's to hear, not a worker's child's. To ignore a signal for a moment forgets what is pending of it. */
    static const int keys[] = {SIGINT, SIGQUIT, SIGTSTP, SIGHUP};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        action.sa_handler = SIG_IGN;
        sigaction(keys[i], &action, NULL);
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
