#!/usr/bin/env bash
# Root file system of the sandbox without a registry: Debian's packages, unpacked. Needs Debian or a relative with its package index,
# and neither root nor a chroot: no script of a package runs.
#     sandbox/rootfs.sh rootfs.tar [plain|numpy]
set -euo pipefail
output="$(realpath -m "$1")"
variant="${2:-plain}"
source="$(dirname "$(realpath "$0")")"

packages=(libc6 libgcc-s1 libexpat1 zlib1g libssl3 libffi8 libbz2-1.0 liblzma5 libuuid1 libcrypt1
  python3.11-minimal libpython3.11-minimal libpython3.11-stdlib)
case "$variant" in
  plain) ;;
  numpy) packages+=(python3-numpy libblas3 liblapack3 libgfortran5 libstdc++6 libquadmath0) ;;
  *) echo "no variant $variant: plain or numpy" >&2; exit 2 ;;
esac

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
mkdir "$work/packages" "$work/root"
cd "$work/packages"
# Root's downloads are otherwise handed to a user who may not write here.
apt-get -o APT::Sandbox::User=root download "${packages[@]}" >/dev/null
for package in *.deb; do dpkg-deb --extract "$package" "$work/root"; done

cd "$work/root"
mkdir -p proc sys dev tmp opt/propel
ln -sf python3.11 usr/bin/python3
rm -rf usr/share/{doc,man,lintian,binfmts,applications,pixmaps} etc/python3.11 usr/lib/python3.11/{idlelib,ensurepip,lib2to3,pydoc_data,test,distutils}
find . -name __pycache__ -prune -exec rm -rf {} +
find usr/lib/python3 -type d -name tests -prune -exec rm -rf {} + 2>/dev/null || true
# Libraries in folders that the dynamic linker finds only through its cache, which no script has made.
for folder in blas lapack; do
  for library in usr/lib/*/"$folder"/*.so.3; do [[ -e "$library" ]] && ln -sf "$folder/${library##*/}" "${library%/*/*}/${library##*/}"; done
done
# Compiled beforehand, for the sandbox cannot write: by the unpacked interpreter itself. A refusal costs only time at each start.
loader=(lib64/ld-linux-*.so.* lib/ld-linux-*.so.*)
for candidate in "${loader[@]}"; do
  [[ -e "$candidate" ]] || continue
  libraries="$(echo lib/*-linux-gnu usr/lib/*-linux-gnu | tr ' ' ':')"
  PYTHONHOME="$PWD/usr" "$candidate" --library-path "$libraries" usr/bin/python3.11 -S -s -m compileall -q -j 1 \
    --invalidation-mode unchecked-hash -s "$PWD" -p / usr/lib/python3.11 usr/lib/python3 >/dev/null 2>&1 || true
  break
done
# The library that stands before the C library, which the image finds beside its runner: by the compiler of a package of its own.
(cd "$work" && apt-get -o APT::Sandbox::User=root download tcc >/dev/null && dpkg-deb --extract tcc_*.deb compiler)
"$work/compiler/usr/bin/tcc" -B "$(echo "$work"/compiler/usr/lib/*/tcc)" -shared -nostdlib -o opt/propel/virtual.so "$source/runner/virtual.c"
chmod 755 opt/propel/virtual.so
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf "$output" .
