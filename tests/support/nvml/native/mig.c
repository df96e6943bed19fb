/* The functions about MIG: modes, profiles, placements, instances. */

#include "answer.h"

struct placement {
    unsigned int start, size;
};

/* The struct of version 1; that of version 2 has its version before it and a name after it. */
struct profile {
    unsigned int id, peer_to_peer, slices, instances, multiprocessors;
    unsigned int copy_engines, decoders, encoders, jpeg_engines, ofa_engines;
    unsigned long long memory_mib;
};

struct named_profile {
    unsigned int version;
    unsigned int id, peer_to_peer, slices, instances, multiprocessors;
    unsigned int copy_engines, decoders, encoders, jpeg_engines, ofa_engines;
    unsigned long long memory_mib;
    char name[96];
};

struct compute_profile {
    unsigned int id, slices, instances, multiprocessors;
    unsigned int copy_engines, decoders, encoders, jpeg_engines, ofa_engines;
};

struct named_compute_profile {
    unsigned int version;
    struct compute_profile profile;
    char name[96];
};

struct gpu_instance_info {
    device gpu;
    unsigned int id, profile_id;
    struct placement placement;
};

struct attributes {
    unsigned int multiprocessors, copy_engines, decoders, encoders, jpeg_engines, ofa_engines;
    unsigned int gpu_instance_slices, compute_instance_slices;
    unsigned long long memory_mib;
};

EXPORT result nvmlDeviceGetMigMode(device gpu, unsigned int *current, unsigned int *pending)
{
    struct answer answer;
    result status = ASK(&answer, NUMBER(gpu));
    if (status == SUCCESS) {
        *current = (unsigned int)answer.numbers[0];
        *pending = (unsigned int)answer.numbers[1];
    }
    return status;
}

EXPORT result nvmlDeviceSetMigMode(device gpu, unsigned int mode, result *activation)
{
    struct answer answer;
    return put_number(ASK(&answer, NUMBER(gpu), mode), &answer, (unsigned int *)activation);
}

#define PUT_PROFILE(info)                                                                                              \
    do {                                                                                                               \
        const uint64_t *from = answer.numbers;                                                                         \
        (info)->id = (unsigned int)from[0];                                                                            \
        (info)->peer_to_peer = 0;                                                                                      \
        (info)->slices = (unsigned int)from[1];                                                                        \
        (info)->instances = (unsigned int)from[2];                                                                     \
        (info)->multiprocessors = (unsigned int)from[3];                                                               \
        (info)->copy_engines = (unsigned int)from[4];                                                                  \
        (info)->decoders = (unsigned int)from[5];                                                                      \
        (info)->encoders = (unsigned int)from[6];                                                                      \
        (info)->jpeg_engines = (unsigned int)from[7];                                                                  \
        (info)->ofa_engines = (unsigned int)from[8];                                                                   \
        (info)->memory_mib = from[9];                                                                                  \
    } while (0)

EXPORT result nvmlDeviceGetGpuInstanceProfileInfo(device gpu, unsigned int profile, struct profile *info)
{
    struct answer answer;
    result status = ASK(&answer, NUMBER(gpu), profile);
    if (status == SUCCESS)
        PUT_PROFILE(info);
    return status;
}

EXPORT result nvmlDeviceGetGpuInstanceProfileInfoV(device gpu, unsigned int profile, struct named_profile *info)
{
    struct answer answer;
    if (info->version != VERSION(struct named_profile, 2))
        return VERSION_MISMATCH;
    result status = ASK(&answer, NUMBER(gpu), profile);
    if (status == SUCCESS)
        PUT_PROFILE(info);
    return put_text(status, &answer, info->name, sizeof info->name);
}

EXPORT result nvmlDeviceGetGpuInstancePossiblePlacements_v2(device gpu, unsigned int profile_id,
                                                            struct placement *placements, unsigned int *count)
{
    struct answer answer;
    result status = ASK(&answer, NUMBER(gpu), profile_id);
    if (status != SUCCESS)
        return status;
    unsigned int room = *count;
    *count = (unsigned int)answer.numbers[0];
    if (placements == NULL)
        return SUCCESS;
    if (*count > room)
        return INSUFFICIENT_SIZE;
    for (unsigned int index = 0; index < *count; index++)
        placements[index] = (struct placement){(unsigned int)answer.numbers[2 * index + 1],
                                               (unsigned int)answer.numbers[2 * index + 2]};
    return SUCCESS;
}

EXPORT result nvmlDeviceGetGpuInstances(device gpu, unsigned int profile_id, gpu_instance *found, unsigned int *count)
{
    struct answer answer;
    return put_handles(ASK(&answer, NUMBER(gpu), profile_id), &answer, found, count);
}

EXPORT result nvmlDeviceCreateGpuInstanceWithPlacement(device gpu, unsigned int profile_id,
                                                       const struct placement *placement, gpu_instance *made)
{
    struct answer answer;
    return put_handle(ASK(&answer, NUMBER(gpu), profile_id, placement->start, placement->size), &answer, made);
}

EXPORT result nvmlGpuInstanceGetInfo(gpu_instance instance, struct gpu_instance_info *info)
{
    struct answer answer;
    result status = ASK(&answer, NUMBER(instance));
    if (status == SUCCESS)
        *info = (struct gpu_instance_info){(device)(uintptr_t)answer.numbers[0],
                                           (unsigned int)answer.numbers[1],
                                           (unsigned int)answer.numbers[2],
                                           {(unsigned int)answer.numbers[3], (unsigned int)answer.numbers[4]}};
    return status;
}

EXPORT result nvmlGpuInstanceDestroy(gpu_instance instance)
{
    struct answer answer;
    return ASK(&answer, NUMBER(instance));
}

static void put_compute_profile(const struct answer *answer, struct compute_profile *profile)
{
    *profile = (struct compute_profile){.id = (unsigned int)answer->numbers[0],
                                        .slices = (unsigned int)answer->numbers[1],
                                        .instances = (unsigned int)answer->numbers[2]};
}

EXPORT result nvmlGpuInstanceGetComputeInstanceProfileInfo(gpu_instance instance, unsigned int profile,
                                                           unsigned int engines, struct compute_profile *info)
{
    struct answer answer;
    result status = ASK(&answer, NUMBER(instance), profile, engines);
    if (status == SUCCESS)
        put_compute_profile(&answer, info);
    return status;
}

EXPORT result nvmlGpuInstanceGetComputeInstanceProfileInfoV(gpu_instance instance, unsigned int profile,
                                                            unsigned int engines, struct named_compute_profile *info)
{
    struct answer answer;
    if (info->version != VERSION(struct named_compute_profile, 2))
        return VERSION_MISMATCH;
    result status = ASK(&answer, NUMBER(instance), profile, engines);
    if (status == SUCCESS)
        put_compute_profile(&answer, &info->profile);
    return put_text(status, &answer, info->name, sizeof info->name);
}

EXPORT result nvmlGpuInstanceCreateComputeInstance(gpu_instance instance, unsigned int profile_id,
                                                   compute_instance *made)
{
    struct answer answer;
    return put_handle(ASK(&answer, NUMBER(instance), profile_id), &answer, made);
}

EXPORT result nvmlGpuInstanceGetComputeInstances(gpu_instance instance, unsigned int profile_id,
                                                 compute_instance *found, unsigned int *count)
{
    struct answer answer;
    return put_handles(ASK(&answer, NUMBER(instance), profile_id), &answer, found, count);
}

EXPORT result nvmlComputeInstanceDestroy(compute_instance instance)
{
    struct answer answer;
    return ASK(&answer, NUMBER(instance));
}

EXPORT result nvmlDeviceGetMigDeviceHandleByIndex(device gpu, unsigned int index, device *found)
{
    struct answer answer;
    return put_handle(ASK(&answer, NUMBER(gpu), index), &answer, found);
}

EXPORT result nvmlDeviceGetAttributes_v2(device partition, struct attributes *attributes)
{
    struct answer answer;
    result status = ASK(&answer, NUMBER(partition));
    if (status == SUCCESS)
        *attributes = (struct attributes){.gpu_instance_slices = (unsigned int)answer.numbers[0],
                                          .compute_instance_slices = (unsigned int)answer.numbers[1]};
    return status;
}
