/* The floor of ral: scopes, slots, signal handlers, the ladder, and the spawn.

   The problem: a request to stop must be heard while Python can't run (one long C call, a thread that holds the
   interpreter lock, a regex that never ends). CPython keeps one bit per signal and acts on it between bytecodes, so
   nothing written in Python can hear three SIGTERM during one sorted(). What stands here runs in the handler itself.

   In four parts, to be read in this order: _floor_scope.h, what is cancelled; _floor_handlers.h, how a signal reaches it,
   the ladder, the installation; _floor_spawn.h; and here the slots and the module. */

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

#include "_floor_scope.h"

#include "_floor_handlers.h"

#include "_floor_spawn.h"

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

/* builtins.compile() first makes the Python class of every syntax-tree node, 1.1 ms that no program of ours needs. */
static PyObject *
floor_compile_text(PyObject *Py_UNUSED(self), PyObject *args)
{
    const char *text, *name;
    if (!PyArg_ParseTuple(args, "ss:compile_text", &text, &name))
        return NULL;
    PyCompilerFlags flags = {.cf_flags = PyCF_SOURCE_IS_UTF8, .cf_feature_version = PY_MINOR_VERSION};
    return Py_CompileStringExFlags(text, name, Py_file_input, &flags, 1);
}

static PyMethodDef floor_methods[] = {
    {"compile_text", floor_compile_text, METH_VARARGS, "(text, filename) -> the code object of a module."},
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
