# find_package(ingot) -> ingot::ingot, the headers; find_package(ingot COMPONENTS torch) -> ingot::torch as well,
# the headers on libtorch, which find_package(Torch) must find. Read where it lies beside the headers, or installed.
include(CMakeFindDependencyMacro)
find_dependency(Threads)

if(NOT TARGET ingot::ingot)
  find_path(INGOT_INCLUDE ingot/ingot.h NO_DEFAULT_PATH
            PATHS "${CMAKE_CURRENT_LIST_DIR}/../include" "${CMAKE_CURRENT_LIST_DIR}/../../../include"
                  "${CMAKE_CURRENT_LIST_DIR}/../../../../include")
  mark_as_advanced(INGOT_INCLUDE)
  if(NOT INGOT_INCLUDE)
    set(ingot_FOUND FALSE)
    set(ingot_NOT_FOUND_MESSAGE "the headers of ingot are not where its CMake package is")
    return()
  endif()
  add_library(ingot::ingot INTERFACE IMPORTED)
  set_target_properties(ingot::ingot PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${INGOT_INCLUDE}"
                        INTERFACE_COMPILE_FEATURES cxx_std_17
                        INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS}")
endif()

if("torch" IN_LIST ingot_FIND_COMPONENTS AND NOT TARGET ingot::torch)
  find_dependency(Torch)
  add_library(ingot::torch INTERFACE IMPORTED)
  set_target_properties(ingot::torch PROPERTIES INTERFACE_LINK_LIBRARIES "ingot::ingot;${TORCH_LIBRARIES}")
  set(ingot_torch_FOUND TRUE)
endif()
