/* The unwinder of GCC 12 that is linked into our binaries asks the C library for _dl_find_object(), which
 * glibc has since 2.35. This is the same answer from dl_iterate_phdr(). Only exceptions go through it.
 */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>

#if __GLIBC_PREREQ(2, 35)

struct search {
    uintptr_t address;
    struct dl_find_object* found;
};

/* The unwinder reads nothing of a link_map but its l_addr. */
static __thread struct link_map map;

static int look_at(struct dl_phdr_info* object, size_t size, void* data) {
    const struct search* search = data;
    uintptr_t begin = UINTPTR_MAX;
    uintptr_t end = 0;
    uintptr_t eh_frame = 0;
    int holds_address = 0;
    (void)size;
    for (size_t i = 0; i < object->dlpi_phnum; ++i) {
        const ElfW(Phdr)* header = &object->dlpi_phdr[i];
        const uintptr_t first = object->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_GNU_EH_FRAME) eh_frame = first;
        if (header->p_type != PT_LOAD) continue;
        const uintptr_t last = first + header->p_memsz;
        if (search->address >= first && search->address < last) holds_address = 1;
        begin = first < begin ? first : begin;
        end = last > end ? last : end;
    }
    if (!holds_address || eh_frame == 0) return 0;
    map.l_addr = object->dlpi_addr;
    *search->found = (struct dl_find_object){.dlfo_map_start = (void*)begin,
                                             .dlfo_map_end = (void*)end,
                                             .dlfo_link_map = &map,
                                             .dlfo_eh_frame = (void*)eh_frame};
    return 1;
}

__attribute__((visibility("hidden"))) int _dl_find_object(void* address, struct dl_find_object* found) {
    struct search search = {(uintptr_t)address, found};
    return dl_iterate_phdr(look_at, &search) == 1 ? 0 : -1;
}

#endif
