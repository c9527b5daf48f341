# SPDX-License-Identifier: MIT
#
# vcpkg, for the CPU: `vcpkg install gpuconv --overlay-ports=vcpkg`, where ../finish has written this folder.
vcpkg_check_linkage(ONLY_DYNAMIC_LIBRARY)
vcpkg_download_distfile(ARCHIVE
  URLS "https://gpuconv.example.org/releases/gpuconv-${VERSION}.tar.xz"
  FILENAME "gpuconv-${VERSION}.tar.xz"
  SHA512 00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000)
vcpkg_extract_source_archive(SOURCE_PATH ARCHIVE "${ARCHIVE}")

# The sources look for stb's headers in a folder of this name.
file(GLOB stb "${CURRENT_INSTALLED_DIR}/include/stb_image*.h")
file(COPY ${stb} DESTINATION "${SOURCE_PATH}/include/stb")
string(APPEND VCPKG_C_FLAGS " -I${SOURCE_PATH}/include")
string(APPEND VCPKG_CXX_FLAGS "") # vcpkg wants both

set(options -Dcuda=disabled -Dtests=disabled -Djpeg=enabled -Dheif=disabled -Dlcms=disabled -Dtar=disabled)
vcpkg_check_features(OUT_FEATURE_OPTIONS formats FEATURES tiff tiff webp webp)
string(REPLACE "=ON" "=enabled" formats "${formats}")
string(REPLACE "=OFF" "=disabled" formats "${formats}")
vcpkg_configure_meson(SOURCE_PATH "${SOURCE_PATH}" OPTIONS ${options} ${formats})
vcpkg_install_meson()
vcpkg_fixup_pkgconfig()
vcpkg_copy_tools(TOOL_NAMES gpuconv AUTO_CLEAN)

# The file for find_package() finds the library from its own place, so it stays in lib/cmake.
set(VCPKG_POLICY_SKIP_LIB_CMAKE_MERGE_CHECK enabled)
set(VCPKG_POLICY_SKIP_MISPLACED_CMAKE_FILES_CHECK enabled)
file(REMOVE "${CURRENT_PACKAGES_DIR}/lib/libgpuconv.a" "${CURRENT_PACKAGES_DIR}/debug/lib/libgpuconv.a")
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
