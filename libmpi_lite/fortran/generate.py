#!/usr/bin/env python3
"""
NAME
    generate.py - make the Fortran bindings from the table of procedures and from mpi.h

SYNOPSIS
    generate.py procedures.txt interfaces.f90 mpi.h ENTRIES.C MPIF.H MODULES.F90
    generate.py --check procedures.txt mpi.h

DESCRIPTION
    Writes the C entries that all three bindings call, mpif.h, and the modules mpi and mpi_f08. The
    table's head explains it; interfaces.f90 has what is written by hand. --check names the functions
    of mpi.h that the table does not have, and the other way round.

EXIT STATUS
    0  written; --check: both agree
    1  something in the input is wrong; one sentence says what
"""
import re
import sys

# Handles by their name in MPI_NAME_fromint; C's type and the null handle have another one for Type.
HANDLES = {name: f"MPI_{'Datatype' if name == 'Type' else name}"
           for name in ("Comm", "Errhandler", "File", "Group", "Info", "Message", "Op", "Request",
                        "Session", "Type", "Win")}
SCALARS = {"": ("int", "integer"), "logical": ("int", "logical"), "index": ("int", "integer"),
           "old_aint": ("int", "integer"), "aint": ("MPI_Aint", "integer(8)"),
           "count": ("MPI_Count", "integer(8)"), "num": ("int", "integer"), "disp": ("int", "integer"),
           "weights": ("int", "integer")}
# What these are in the procedure with large counts.
LARGE = {"num": "count", "disp": "aint"}
STRINGS = ("string", "word")
# Addresses with a meaning of their own, each a variable of C, so that C can compare addresses: type,
# name, dimensions. In mpif.h it is a COMMON block, in the modules a variable with that binding. Every
# shared library has COMMON blocks of its own, which the dynamic linker makes one as long as they are
# in its global scope; the variables are in libmpifort_abi only.
SENTINELS = (("integer", "MPI_BOTTOM", ""), ("integer", "MPI_IN_PLACE", ""), ("integer", "MPI_BUFFER_AUTOMATIC", "(1)"),
             ("integer", "MPI_UNWEIGHTED", "(1)"), ("integer", "MPI_WEIGHTS_EMPTY", "(1)"),
             ("status", "MPI_STATUS_IGNORE", ""), ("status", "MPI_STATUSES_IGNORE", "(1)"))
NULL_FUNCTIONS = [("Copy_function", "MPI_DUP_FN"), ("Copy_function", "MPI_NULL_COPY_FN"),
                  ("Delete_function", "MPI_NULL_DELETE_FN")] + [
    (f"{kind}_{what}_attr_function", f"MPI_{kind.upper()}_{name}_FN") for kind in ("Comm", "Type", "Win")
    for what, name in (("copy", "DUP"), ("copy", "NULL_COPY"), ("delete", "NULL_DELETE"))]
ARGUMENT = re.compile(r"(?:(out|inout) )?(?:(\w+|procedure\(\w+\)) )?(\w+)(?:\[(.*)\])?$")
LINE = re.compile(r"(\w+)(?: ([*@!+-]+))?(?: +(.*))?$")


class Argument:
    """One argument: how it looks in C and in Fortran, and what has to be done around the C call."""

    def __init__(self, text, where):
        match = ARGUMENT.match(text)
        if not match:
            sys.exit(f"{where}: '{text}' is not an argument")
        self.direction, self.kind, self.name = (match[i] or "" for i in (1, 2, 3))
        self.length = match[4]  # None: not an array
        self.array = self.length is not None and self.kind not in STRINGS
        self.interface = self.kind[10:-1] if self.kind.startswith("procedure(") else ""
        if not (self.kind in SCALARS or self.kind in HANDLES or self.kind in STRINGS or self.interface or
                self.kind in ("buf", "status")):
            sys.exit(f"{where}: '{self.kind}' is not a kind of argument")

    # ---- C ----
    def parameter(self):
        if self.interface:
            return f"void (*{self.name})(void)"
        if self.length == "3,*":
            return f"int {self.name}[][3]"
        if self.kind in HANDLES:
            return f"int* {self.name}"
        types = {"buf": "void", "status": "MPI_Status", **dict.fromkeys(STRINGS, "char")}
        return f"{types.get(self.kind) or SCALARS[self.kind][0]}* {self.name}"

    def copied(self):
        """The array is one of another type in C."""
        return self.array and (self.kind in HANDLES or self.kind == "old_aint")

    def elements(self, arguments):
        if self.length in ("outdegree(comm)", "indegree(comm)"):
            return f"neighbors_of(*comm, {int(self.length == 'indegree(comm)')})"
        if self.length != "ranks(comm)":
            return f"*{self.length}"
        in_place = any(a.name == "sendbuf" for a in arguments) and self.name.startswith("send")
        return ("is_in_place(sendbuf) ? 0 : " if in_place else "") + "ranks_of(*comm)"

    def before(self, arguments):
        name, kind = self.name, self.kind
        c_type = HANDLES.get(kind, "MPI_Aint")
        if self.copied():
            value = f"{name}[i]" if kind == "old_aint" else f"MPI_{kind}_fromint({name}[i])"
            if self.direction == "out":
                value = self.null()
            return [f"const MPI_Count {name}_n = {self.elements(arguments)};",
                    f"SCRATCH({c_type}, {name}_c, {name}_n);",
                    f"for (MPI_Count i = 0; {name}_c && i < {name}_n; i++) {name}_c[i] = {value};"]
        if kind in HANDLES and self.direction:
            first = self.null() if self.direction == "out" else f"MPI_{kind}_fromint(*{name})"
            return [f"{c_type} {name}_c = {first};"]
        if kind == "old_aint" and self.direction:
            return [f"MPI_Aint {name}_c = 0;"]
        if kind == "index":
            return [f"*{self.length} = 0;"] if self.array else [f"int {name}_c = MPI_UNDEFINED;"]
        if kind in STRINGS:
            return [f"char {name}_c[{self.length}];"] if self.direction else [f"struct string {name}_c;"]
        return []

    def null(self):
        return HANDLES[self.kind].upper() + "_NULL"

    def value(self):
        """What the C function gets."""
        name, kind = self.name, self.kind
        if self.interface:
            return f"(MPI_{self.interface}*){name}"
        if self.copied() or kind in STRINGS and self.direction:
            return f"{name}_c"
        if kind in HANDLES or kind == "old_aint" or kind == "index" and not self.array:
            return f"&{name}_c" if self.direction else f"C_HANDLE({kind}, {HANDLES[kind]}, *{name})" if kind in HANDLES else f"*{name}"
        if kind in ("buf", "status", "weights"):
            return f"c_{kind}({name})"
        if kind in STRINGS:
            return f"string_in(&{name}_c, {name}, {name}_len, {int(kind == 'word')})"
        return name if self.array or self.direction else f"*{name}"

    def after(self):
        name, kind = self.name, self.kind
        back = {"old_aint": f"code = narrow({name}_c, {name}, code);",
                "index": f"*{name} = fortran_index({name}_c);", "logical": f"*{name} = *{name} != 0;"}
        if self.copied():
            loop = [f"for (MPI_Count i = 0; {name}_c && i < {name}_n; i++) {name}[i] = MPI_{kind}_toint({name}_c[i]);"]
            return (loop if self.direction else []) + [f"RELEASE({name}_c);"]
        if kind in HANDLES and self.direction:
            return [f"*{name} = MPI_{kind}_toint({name}_c);"]
        if kind == "index" and self.array:
            return [f"for (int i = 0; i < *{self.length}; i++) {name}[i] = fortran_index({name}[i]);"]
        if kind in STRINGS:
            return [f"if (code == MPI_SUCCESS) string_out({name}_c, {name}, {name}_len);" if self.direction else
                    f"string_free(&{name}_c);"]
        return [back[kind]] if self.direction and not self.array and kind in back else []

    # ---- Fortran ----
    def declaration(self, f08, descriptor):
        kind, name = self.kind, self.name
        intent = f", intent({self.direction or 'in'})"
        dimension = {None: "", "3,*": "(3,*)"}.get(self.length, "(*)") if kind not in STRINGS else ""
        if self.interface:
            return [f"procedure(MPI_{self.interface}) :: {name}" if f08 else f"external :: {name}"]
        if kind == "buf":
            # What is only partly written is not undefined before.
            if descriptor:
                return [f"type(*), dimension(..){intent if not self.direction else ''}, asynchronous :: {name}"]
            given = intent if f08 and not self.direction else ""
            return [f"!GCC$ ATTRIBUTES NO_ARG_CHECK :: {name}", f"type(*), dimension(*){given} :: {name}"]
        if kind == "status":
            if f08:
                return [f"type(MPI_Status){intent if not self.direction else ''} :: {name}{dimension}"]
            return [f"integer{'' if self.direction else intent} :: {name}(8{',*' if self.array else ''})"]
        if kind in STRINGS:
            return [f"character(len=*){intent} :: {name}"]
        of = f"type({HANDLES[kind]})" if f08 and kind in HANDLES else SCALARS.get(kind, SCALARS[""])[1]
        return [f"{of}{'' if self.array and self.direction else intent} :: {name}{dimension}"]


class Procedure:
    def __init__(self, line, where, large=False):
        match = LINE.match(line)
        if not match:
            sys.exit(f"{where}: not a line of the table")
        self.name, self.marks = match[1], match[2] or ""
        self.arguments = [Argument(text, where) for text in match[3].split(", ")] if match[3] else []
        self.counted = any(a.kind in LARGE for a in self.arguments)
        # In module mpi_f08 the procedure with large counts has the name of the other one.
        self.generic = self.name.removesuffix("_c") if "+" in self.marks else self.name
        self.large = large or "_c" in self.name[-2:]
        if large:
            self.generic, self.name = self.name, self.name + "_c"
            for argument in self.arguments:
                argument.kind = LARGE.get(argument.kind, argument.kind)
        # The program may go on before its buffers are free again.
        self.nonblocking = any(a.kind == "buf" for a in self.arguments) and any(
            a.kind == "Request" and a.direction == "out" for a in self.arguments)

    def parameters(self, descriptor=False):
        one = [a.parameter() if not (descriptor and a.kind == "buf") else f"CFI_cdesc_t* {a.name}" for a in self.arguments]
        return ", ".join([*one, "int* ierror", *(f"size_t {a.name}_len" for a in self.arguments if a.kind in STRINGS)])

    def entry(self):
        lower = self.name.lower()
        body = [s for a in self.arguments for s in a.before(self.arguments)]
        body.append(f"int code = MPI_{self.name}({', '.join(a.value() for a in self.arguments)});")
        body += [s for a in self.arguments for s in a.after()]
        body = "".join(f"  {statement}\n" for statement in [*body, "give_code(ierror, code);"])
        known = " | ".join(f"*{a.name}" for a in self.arguments if a.kind in HANDLES and not a.direction and not a.array)
        if known and any(a.kind == "buf" for a in self.arguments):
            text = self.entry_twice(lower, body, known)
        else:
            body = "  enum { numbers = 0 };\n" + body if known else body
            text = f"void pmpi_{lower}_({self.parameters()}) {{\n{body}}}\n"
        return text + f"MPI_NAME({lower}_);\n" + (self.descriptor_entry(lower) if self.nonblocking else "")

    def entry_twice(self, lower, body, known):
        """For handles that are numbers, and for any (entries.h)."""
        parameters = self.parameters()
        values = ", ".join([a.name for a in self.arguments] + ["ierror"] +
                           [f"{a.name}_len" for a in self.arguments if a.kind in STRINGS])
        return f"""static ALWAYS_INLINE void {lower}_body(const int numbers, {parameters}) {{
{body}}}
static NOINLINE void {lower}_any({parameters}) {{
  {lower}_body(0, {values});
}}
void pmpi_{lower}_({parameters}) {{
  if (are_numbers({known}))
    {lower}_body(1, {values});
  else
    {lower}_any({values});
}}
"""

    def descriptor_entry(self, lower):
        """The entry of module mpi_f08, which gets descriptors of the buffers."""
        names = [a.name for a in self.arguments]
        buffers = [a.name for a in self.arguments if a.kind == "buf"]

        def call(replaced):
            return f"pmpi_{lower}_({', '.join(replaced.get(name, name) for name in [*names, 'ierror'])});"
        integer = "MPI_Count" if self.large else "int"
        addresses = {b: f"{b}->base_addr" for b in buffers}
        direct = " && ".join(f"is_contiguous({b})" for b in buffers)
        refuse = f"""refuse_section("MPI_{self.name}", {'comm' if 'comm' in names else 'NULL'}, request, ierror);"""
        if len(buffers) == 1 and {"count", "datatype"} <= set(names) and "partitions" not in names:
            buffer = buffers[0]
            body = f"""  if (*count <= 0 || {direct}) {{
    {call(addresses)}
    return;
  }}
  {integer} one = 1;
  int type = section_type({buffer}, *count, *datatype);
  if (type == MPI_Type_toint(MPI_DATATYPE_NULL)) {{
    {refuse}
    return;
  }}
  {call({**addresses, "count": "&one", "datatype": "&type"})}
  free_section_type(type);
"""
        else:
            body = f"  if ({direct})\n    {call(addresses)}\n  else\n    {refuse}\n"
        return f"void pmpi_{lower}_f08ts_({self.parameters(True)}) {{\n{body}}}\nMPI_NAME({lower}_f08ts_);\n"

    def interface(self, prefix, f08):
        """The interface body, in module mpi_f08 or mpi."""
        descriptor = f08 and self.nonblocking
        error = [] if "!" in self.marks else ["ierror"]
        names = ", ".join([a.name for a in self.arguments] + error)
        bind = f' bind(C, name="{prefix.lower()}_{self.name.lower()}_f08ts_")' if descriptor else ""
        lines = [f"subroutine {prefix}_{self.name}({names}){bind}"]
        if f08:
            lines.append("  import")
        lines += [f"  {d}" for a in self.arguments for d in a.declaration(f08, descriptor)]
        lines += [f"  integer,{' optional,' if f08 else ''} intent(out) :: ierror"] * len(error)
        return "\n".join("    " + l for l in [*lines, "end subroutine"])


def read_table(path):
    """Each procedure, and behind it the one with large counts."""
    table = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.strip() and not line.startswith("#"):
                table.append(Procedure(line.rstrip(), f"{path}:{number}"))
                if table[-1].counted:
                    table.append(Procedure(line.rstrip(), f"{path}:{number}", large=True))
    return table


class Header:
    """The constants and the functions of mpi.h."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        # The tool information interface is for C only (MPI 5.0, section 15.3).
        self.functions = re.findall(r"^(?:int|double|MPI_\w+) MPI_(?!T_)(\w+)\(", text, re.M)
        self.handles = [kind for kind, c_type in HANDLES.items() if f" {c_type};" in text]
        self.integers, self.objects = {}, {}  # name: value; name: (C's type, value)
        for name, value in re.findall(r"^#define (MPI_(?!T_)\w+) (\S.*)$", text, re.M):
            if match := re.fullmatch(r"\(\((MPI_\w+)\)(0x[0-9a-f]+)\)", value):
                self.objects[name] = match[1], int(match[2], 16)
            elif match := re.fullmatch(r"\(?(-?\w+)\)?", value):
                if match[1] in self.objects:
                    self.objects[name] = self.objects[match[1]]
                else:
                    # Fortran's strings have no final zero (MPI 5.0, section 2.6).
                    self.integers[name] = int(match[1], 0) - name.startswith("MPI_MAX_")
        self.integers |= {"MPI_STATUS_SIZE": 8, "MPI_SOURCE": 1, "MPI_TAG": 2, "MPI_ERROR": 3,
                          "MPI_ADDRESS_KIND": 8, "MPI_COUNT_KIND": 8, "MPI_OFFSET_KIND": 8, "MPI_INTEGER_KIND": 4}


LOGICALS = ("MPI_SUBARRAYS_SUPPORTED", "MPI_ASYNC_PROTECTS_NONBLOCKING")
MADE = "Made from procedures.txt and mpi.h by generate.py."


def block(name):
    return name.replace("MPI_", "MPI_FORT_")


def variable(of, name, dimension, prefix="mpi_fort_"):
    return f'  {of}, bind(C, name="{name.lower().replace("mpi_", prefix)}_") :: {name}{dimension}\n'


def entries(procedures):
    yield f"// {MADE}\n" '#include "entries.h"\n\n'
    for procedure in procedures:
        if "*" not in procedure.marks:
            yield procedure.entry() + "\n"


def mpif(header):
    """For fixed and free source form: columns 7 to 72, no continued lines."""
    yield f"! {MADE}\n!\n"
    yield "! -fdefault-integer-8 gives INTEGER 8 bytes; MPI's has 4, and the next line then divides by zero.\n"
    lines = ["integer MPI_4_BYTES; parameter (MPI_4_BYTES=4/(8-kind(1)))"]
    for name, value in (header.integers | {n: v for n, (_, v) in header.objects.items()}).items():
        lines += [f"integer {name}", f"parameter ({name}={value})"]
    for name in LOGICALS:
        lines += [f"logical {name}", f"parameter ({name}=.false.)"]
    for kind, name, dimension in SENTINELS:
        dimension = dimension if kind != "status" else "(8,1)" if dimension else "(8)"
        lines += [f"integer {name}{dimension}", f"common /{block(name)}/ {name}", f"save /{block(name)}/"]
    lines += [f"external {name}" for _, name in NULL_FUNCTIONS]
    for prefix in ("MPI", "PMPI"):
        lines += [f"double precision {prefix}_WTIME, {prefix}_WTICK",
                  f"integer(kind=MPI_ADDRESS_KIND) {prefix}_AINT_ADD, {prefix}_AINT_DIFF"]
    for line in lines:
        if len(line) > 66:
            sys.exit(f"mpif.h: '{line}' does not fit into columns 7 to 72")
        yield f"      {line}\n"


def types_module(header):
    """What both modules have: the types of handles and of MPI_Status, and MPI_Sizeof."""
    equal = [c_type for c_type in (HANDLES[kind] for kind in header.handles)]
    sizes = [f"{of}({kind})" for of, kinds in (("integer", (1, 2, 4, 8, 16)), ("logical", (1, 2, 4, 8, 16)),
                                               ("real", (4, 8, 10, 16)), ("complex", (4, 8, 10, 16)))
             for kind in kinds] + ["character(*)"]
    names = ["sizeof_" + re.sub(r"\W", "", of) for of in sizes]
    yield f"! {MADE}\nmodule mpi_abi_types\n  implicit none\n  private :: {', '.join(names)}\n"
    for c_type in equal:
        yield f"  type, bind(C) :: {c_type}\n    integer :: MPI_VAL\n  end type\n"
    yield "  type, bind(C) :: MPI_Status\n    integer :: MPI_SOURCE, MPI_TAG, MPI_ERROR\n"
    yield "    integer, private :: MPI_internal(5)\n  end type\n"
    for of, name, dimension in SENTINELS:
        if of != "status":
            yield variable(of, name, dimension)
    for operator, word in (("==", "eq"), ("/=", "ne")):
        functions = ", ".join(f"{word}_{c_type[4:].lower()}" for c_type in equal)
        yield f"  private :: {functions}\n  interface operator({operator})\n    module procedure {functions}\n  end interface\n"
    for prefix in ("MPI", "PMPI"):
        yield f"  interface {prefix}_Sizeof\n    module procedure {', '.join(names)}\n  end interface\n"
    yield "contains\n"
    for operator, word in (("==", "eq"), ("/=", "ne")):
        for c_type in equal:
            yield f"""  elemental logical function {word}_{c_type[4:].lower()}(a, b) result(answer)
    type({c_type}), intent(in) :: a, b
    answer = a%MPI_VAL {operator} b%MPI_VAL
  end function
"""
    for of, name in zip(sizes, names):
        yield f"""  subroutine {name}(x, size, ierror)
    {of}, intent(in) :: x(..)
    integer, intent(out) :: size
    integer, optional, intent(out) :: ierror
    size = storage_size(x) / 8
    if (present(ierror)) ierror = 0
  end subroutine
"""
    yield "end module\n"


def module(name, procedures, header, by_hand):
    f08 = name == "mpi_f08"
    yield f"\nmodule {name}\n  use mpi_abi_types\n  use, intrinsic :: iso_c_binding, only: c_ptr\n  implicit none\n"
    yield "  private :: c_ptr\n"
    for constant, value in header.integers.items():
        yield f"  integer, parameter :: {constant} = {value}\n"
    for constant, (of, value) in header.objects.items():
        yield f"  type({of}), parameter :: {constant} = {of}({value})\n" if f08 else f"  integer, parameter :: {constant} = {value}\n"
    for constant in LOGICALS:
        yield f"  logical, parameter :: {constant} = .false.\n"
    for kind, sentinel, dimension in SENTINELS:
        if kind == "status" and f08:
            yield variable("type(MPI_Status)", sentinel, dimension, "mpi_fort_f08_")
        elif kind == "status":
            yield variable("integer", sentinel, "(8,1)" if dimension else "(8)")
    if f08:
        yield by_hand["callbacks"]
    for interface, function in NULL_FUNCTIONS:
        if not f08:
            yield f"  external :: {function}\n"
        elif not interface.startswith(("Copy", "Delete")):
            yield f"  procedure(MPI_{interface}) :: {function}\n"
    for prefix in ("MPI", "PMPI"):
        special = by_hand["both"] + by_hand[name]
        yield re.sub(r"\b(function|subroutine|interface) MPI_|(\")mpi_", lambda m: f"{m[1]} {prefix}_" if m[1] else
                     f'"{prefix.lower()}_', special)
        # By the name that programs call; a generic name may be that of one of its procedures.
        generics = {}
        for procedure in procedures:
            if "@" not in procedure.marks and not ("-" in procedure.marks if f08 else procedure.large):
                generics.setdefault(procedure.generic, []).append(procedure.interface(prefix, f08))
        yield "  interface\n"
        yield from (bodies[0] + "\n" for bodies in generics.values() if len(bodies) == 1)
        yield "  end interface\n"
        for generic, bodies in generics.items():
            if len(bodies) > 1:
                yield "\n".join([f"  interface {prefix}_{generic}", *bodies, "  end interface\n"])
    yield "end module\n"


def modules(procedures, header, hand_path):
    with open(hand_path, encoding="utf-8") as file:
        parts = re.split(r"^!! (\w+)\n", file.read(), flags=re.M)
    by_hand = dict(zip(parts[1::2], parts[2::2]))
    yield from types_module(header)
    yield from module("mpi", procedures, header, by_hand)
    yield from module("mpi_f08", procedures, header, by_hand)


def check(table, header):
    listed = [procedure.name for procedure in table]
    declared = [name for name in header.functions if not name.endswith(("_toint", "_fromint"))]
    # With large counts in the C function only: in Fortran they are the same, as an address has 64 bits.
    declared = [name for name in declared if name in listed or name.removesuffix("_c") not in listed]
    wrong = [f"MPI_{name} is in mpi.h and not in the table" for name in declared if name not in listed]
    wrong += [f"MPI_{name} is in the table and not in mpi.h" for name in listed if name not in declared]
    wrong += [f"MPI_{name} is in the table twice" for name in set(listed) if listed.count(name) > 1]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return bool(wrong)


def main():
    if sys.argv[1:2] == ["--check"]:
        return check(read_table(sys.argv[2]), Header(sys.argv[3]))
    table, hand, header, *outputs = sys.argv[1:]
    header = Header(header)
    # A line of the table for a function that the C library does not have waits until it does.
    procedures = [procedure for procedure in read_table(table) if procedure.name in header.functions]
    for path, text in zip(outputs, (entries(procedures), mpif(header), modules(procedures, header, hand))):
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
