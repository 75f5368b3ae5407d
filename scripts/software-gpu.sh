#!/usr/bin/env bash
# A GPU in software, for tests of the WebGPU provider where there is none: SwiftShader, a Vulkan driver that Debian ships with Chromium.
#     eval "$(scripts/software-gpu.sh FOLDER)"   fetches three files into FOLDER, once, and prints the variables that name them
# Nothing is installed. Exits with 3 and a reason on standard error where the package cannot be reached.
set -euo pipefail
folder="$(mkdir -p "${1:?a folder to keep the driver in}" && cd "$1" && pwd)"
driver="$folder/vk_swiftshader_icd.json"
files=(vk_swiftshader_icd.json libvk_swiftshader.so libvulkan.so.1)

unreachable() {
  echo "no software GPU: $1" >&2
  exit 3
}

fetch() { apt-get download -qq -o APT::Sandbox::User=root "$1" >&2; }

take() { # the three files out of the packages in the working directory
  local package
  for package in ./*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar -x --wildcards --strip-components=4 -C "$folder" \
      "${files[@]/#/./usr/lib/chromium/}" 2>/dev/null || true
  done
}

if ! [[ -f "$driver" && -f "$folder/libvk_swiftshader.so" && -f "$folder/libvulkan.so.1" ]]; then
  [[ "$(uname -sm)" == 'Linux x86_64' ]] || unreachable "SwiftShader is fetched for Linux on x86-64 only, this is $(uname -sm)"
  command -v apt-get >/dev/null || unreachable 'apt-get is not here to fetch the package chromium-common'
  download="$(mktemp -d)"
  trap 'rm -rf "$download"' EXIT
  (
    cd "$download"
    # Chromium keeps the driver in chromium-common, and kept it in chromium before.
    for package in chromium-common chromium; do
      fetch "$package" || { apt-get update -qq >&2 && fetch "$package"; } || true
      take
      [[ -f "$driver" ]] && break
    done
  )
  for file in "${files[@]}"; do
    [[ -f "$folder/$file" ]] || unreachable "the package chromium-common could not be fetched or holds no $file"
  done
fi
echo "export VK_DRIVER_FILES='$driver' VK_ICD_FILENAMES='$driver'"
echo "export LD_LIBRARY_PATH='$folder'\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
