"""Images of programs of this machine: each program at its own path, with the libraries that it loads.

They stand for images that a cluster pulls from a registry, such as those of etcd and Postgres, and for the
daemons when their binaries are not static. Everything is Debian's.
"""

import hashlib
import os
import pathlib
import shutil
import tempfile

from journal import say
from programs import Failed, call, path_of, postgres_folder

HERE = pathlib.Path(__file__).resolve().parent
ARCHIVES = HERE.parent.parent / "target" / "images"
# What entrypoints and backups call.
SHELL = "sh cat chmod cp cut date du env find gzip head id ls mkdir mv rm sed sleep sort tail tar test xargs"
# Any user id works; Postgres looks its own up.
PASSWD = "root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n" + "".join(
    f"user{number}:x:{number}:{number}::/tmp:/bin/sh\n" for number in (26, 70, 999, 1001, 65532)
)


def libraries(program):
    """Returns the shared libraries of a program and its loader; none for a script or a static binary."""
    try:
        lines = call("ldd", program).splitlines()
    except Failed:
        return []
    return [word for line in lines for word in line.split() if word.startswith("/")]


def copy(root, path, target=None):
    """Copies a file into a root, with what symlinks lead to."""
    target = root / str(target or path).lstrip("/")
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(os.path.realpath(path), target)


def install(root, programs):
    """Copies programs and their libraries, and makes the folders that every image has."""
    for program in programs:
        copy(root, program)
        for library in libraries(program):
            copy(root, library)
    for folder in ("etc", "tmp", "proc", "sys", "dev", "run", "usr/local/bin", "bin", "usr/bin"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "tmp").chmod(0o1777)
    (root / "etc/passwd").write_text(PASSWD)


def shell(root):
    """A shell and the programs that scripts call, in /bin."""
    for name in SHELL.split():
        program = path_of(name)
        copy(root, program, f"/bin/{name}")
        for library in libraries(program):
            copy(root, library)


def pack(name, root, entrypoint, path="/usr/local/bin:/usr/bin:/bin", stop="SIGTERM"):
    """Makes an archive of an image from a root."""
    archive = ARCHIVES / f"{name.replace(':', '-')}.tar"
    ARCHIVES.mkdir(parents=True, exist_ok=True)
    words = ", ".join(f'"{word}"' for word in entrypoint)
    recipe = root.parent / "Containerfile"
    recipe.write_text(f"FROM scratch\nCOPY . /\nENV PATH={path}\nENTRYPOINT [{words}]\nSTOPSIGNAL {stop}\n")
    image = f"localhost/{name}"
    call("buildah", "build", "--quiet", "--layers=false", "--file", recipe, "--tag", image, root)
    archive.unlink(missing_ok=True)
    call("buildah", "push", "--quiet", image, f"oci-archive:{archive}:{image}")
    return archive


def daemon(name, tag, binary):
    """Packs a daemon that needs a loader. Images that are shipped are static ones of k8s/images/build."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder) / "root"
        (root / "usr/bin").mkdir(parents=True)
        call("strip", "--strip-debug", "-o", root / "usr/bin" / name, binary)
        install(root, [])
        for library in libraries(binary):
            copy(root, library)
        (root / "var/lib/shortmint").mkdir(parents=True)
        shutil.copytree("/usr/share/zoneinfo", root / "usr/share/zoneinfo", symlinks=True)
        pack(f"shortmint-{name}:{tag}", root, [name])


def recipe():
    """A hash of what the images of the stores are made by."""
    files = (HERE / "rootfs.py", HERE / "postgres-entrypoint", postgres_folder() / "postgres")
    text = b"".join(file.read_bytes() for file in (*files, pathlib.Path(path_of("etcd"))))
    return hashlib.sha256(text).hexdigest()[:12]


def etcd(image):
    """etcd and etcdctl at the paths of the official image."""
    say("packaging etcd of this machine")
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder) / "root"
        install(root, [])
        shell(root)
        for name in ("etcd", "etcdctl"):
            copy(root, path_of(name), f"/usr/local/bin/{name}")
        for library in libraries(path_of("etcd")):
            copy(root, library)
        # Debian's release has `snapshot restore` in etcdctl only.
        (root / "usr/local/bin/etcdutl").write_text('#!/bin/sh\nexec env ETCDCTL_API=3 etcdctl "$@"\n')
        (root / "usr/local/bin/etcdutl").chmod(0o755)
        return pack(image, root, ["etcd"])


def postgres(image):
    """Postgres with an entrypoint that does what that of the official image does."""
    say("packaging Postgres of this machine")
    programs = postgres_folder()
    share = pathlib.Path("/usr/share/postgresql") / programs.parent.name
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder) / "root"
        install(root, [path for path in programs.iterdir() if path.is_file()])
        shell(root)
        library = programs.parent / "lib"
        skip = shutil.ignore_patterns("llvmjit*", "bitcode", "pgxs")
        trees = [library, share, "/usr/lib/locale/C.utf8", "/usr/share/zoneinfo"]
        for tree in map(pathlib.Path, trees):
            shutil.copytree(tree, root / str(tree)[1:], symlinks=False, ignore=skip, dirs_exist_ok=True)
        for module in library.glob("*.so"):
            if not module.name.startswith("llvmjit"):
                for needed in libraries(module):
                    copy(root, needed)
        copy(root, HERE / "postgres-entrypoint", "/usr/local/bin/docker-entrypoint.sh")
        (root / "var/run/postgresql").mkdir(parents=True)
        path = f"/usr/local/bin:{programs}:/usr/bin:/bin"
        return pack(image, root, ["docker-entrypoint.sh"], path, "SIGINT")
