/* The library itself, and its functions about a GPU. */

#include <stdio.h>

#include "answer.h"

static handler the_handler;

EXPORT void fake_set_handler(handler wanted)
{
    the_handler = wanted;
}

result ask(const char *function, const uint64_t *arguments, struct answer *answer)
{
    memset(answer, 0, sizeof *answer);
    return the_handler != NULL ? the_handler(function, arguments, answer) : UNINITIALIZED;
}

/* The library and its machine */

EXPORT result nvmlInitWithFlags(unsigned int flags)
{
    struct answer answer;
    return ASK(&answer, flags);
}

EXPORT result nvmlShutdown(void)
{
    struct answer answer;
    return ASK(&answer, 0);
}

EXPORT const char *nvmlErrorString(result status)
{
    static char text[64];
    snprintf(text, sizeof text, "Error %d", status);
    return text;
}

EXPORT result nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    struct answer answer;
    return put_text(ASK(&answer, 0), &answer, version, length);
}

EXPORT result nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    struct answer answer;
    return put_number(ASK(&answer, 0), &answer, (unsigned int *)version);
}

EXPORT result nvmlDeviceGetCount_v2(unsigned int *count)
{
    struct answer answer;
    return put_number(ASK(&answer, 0), &answer, count);
}

EXPORT result nvmlDeviceGetHandleByIndex_v2(unsigned int index, device *found)
{
    struct answer answer;
    return put_handle(ASK(&answer, index), &answer, found);
}

EXPORT result nvmlDeviceGetHandleByUUID(const char *uuid, device *found)
{
    struct answer answer;
    return put_handle(ASK(&answer, NUMBER(uuid)), &answer, found);
}

/* A GPU */

#define TEXT_OF_A_GPU(name)                                                                                            \
    EXPORT result name(device gpu, char *text, unsigned int length)                                                    \
    {                                                                                                                  \
        struct answer answer;                                                                                          \
        return put_text(ASK(&answer, NUMBER(gpu)), &answer, text, length);                                             \
    }

TEXT_OF_A_GPU(nvmlDeviceGetName)
TEXT_OF_A_GPU(nvmlDeviceGetUUID)
TEXT_OF_A_GPU(nvmlDeviceGetSerial)

#define NUMBER_OF_A_GPU(name)                                                                                          \
    EXPORT result name(device gpu, unsigned int *number)                                                               \
    {                                                                                                                  \
        struct answer answer;                                                                                          \
        return put_number(ASK(&answer, NUMBER(gpu)), &answer, number);                                                 \
    }

NUMBER_OF_A_GPU(nvmlDeviceGetMinorNumber)
NUMBER_OF_A_GPU(nvmlDeviceGetArchitecture)
NUMBER_OF_A_GPU(nvmlDeviceGetNumGpuCores)
NUMBER_OF_A_GPU(nvmlDeviceGetRetiredPagesPendingStatus)
NUMBER_OF_A_GPU(nvmlDeviceGetMaxMigDeviceCount)
NUMBER_OF_A_GPU(nvmlDeviceGetGpuInstanceId)
NUMBER_OF_A_GPU(nvmlDeviceGetComputeInstanceId)

EXPORT result nvmlDeviceGetCudaComputeCapability(device gpu, int *major, int *minor)
{
    struct answer answer;
    result status = ASK(&answer, NUMBER(gpu));
    if (status == SUCCESS) {
        *major = (int)answer.numbers[0];
        *minor = (int)answer.numbers[1];
    }
    return status;
}

struct memory {
    unsigned long long total, free, used;
};

EXPORT result nvmlDeviceGetMemoryInfo(device gpu, struct memory *memory)
{
    struct answer answer;
    result status = ASK(&answer, NUMBER(gpu));
    if (status == SUCCESS)
        *memory = (struct memory){answer.numbers[0], answer.numbers[1], answer.numbers[2]};
    return status;
}

struct pci_info {
    char legacy_bus_id[16];
    unsigned int domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};

static result put_pci_info(result status, const struct answer *answer, struct pci_info *info)
{
    if (status != SUCCESS)
        return status;
    memset(info, 0, sizeof *info);
    info->domain = (unsigned int)answer->numbers[0];
    info->bus = (unsigned int)answer->numbers[1];
    info->device = (unsigned int)answer->numbers[2];
    return put_text(status, answer, info->bus_id, sizeof info->bus_id);
}

EXPORT result nvmlDeviceGetPciInfo_v3(device gpu, struct pci_info *info)
{
    struct answer answer;
    return put_pci_info(ASK(&answer, NUMBER(gpu)), &answer, info);
}

EXPORT result nvmlDeviceGetNvLinkState(device gpu, unsigned int link, unsigned int *active)
{
    struct answer answer;
    return put_number(ASK(&answer, NUMBER(gpu), link), &answer, active);
}

EXPORT result nvmlDeviceGetNvLinkRemotePciInfo_v2(device gpu, unsigned int link, struct pci_info *info)
{
    struct answer answer;
    return put_pci_info(ASK(&answer, NUMBER(gpu), link), &answer, info);
}

EXPORT result nvmlDeviceGetNvLinkRemoteDeviceType(device gpu, unsigned int link, unsigned int *type)
{
    struct answer answer;
    return put_number(ASK(&answer, NUMBER(gpu), link), &answer, type);
}

struct fabric_info {
    unsigned int version;
    unsigned char cluster[16];
    result status;
    unsigned int clique;
    unsigned char state;
    unsigned int health;
};

EXPORT result nvmlDeviceGetGpuFabricInfoV(device gpu, struct fabric_info *info)
{
    struct answer answer;
    if (info->version != VERSION(struct fabric_info, 2))
        return VERSION_MISMATCH;
    result status = ASK(&answer, NUMBER(gpu));
    if (status == SUCCESS) {
        memcpy(info->cluster, answer.text, sizeof info->cluster);
        info->status = (result)answer.numbers[0];
        info->clique = (unsigned int)answer.numbers[1];
        info->state = (unsigned char)answer.numbers[2];
        info->health = 0;
    }
    return status;
}

/* Its health */

EXPORT result nvmlDeviceGetTotalEccErrors(device gpu, unsigned int type, unsigned int counter,
                                          unsigned long long *count)
{
    struct answer answer;
    result status = ASK(&answer, NUMBER(gpu), type, counter);
    if (status == SUCCESS)
        *count = answer.numbers[0];
    return status;
}

EXPORT result nvmlDeviceGetRemappedRows(device gpu, unsigned int *corrected, unsigned int *uncorrected,
                                        unsigned int *pending, unsigned int *failed)
{
    struct answer answer;
    result status = ASK(&answer, NUMBER(gpu));
    if (status == SUCCESS) {
        *corrected = (unsigned int)answer.numbers[0];
        *uncorrected = (unsigned int)answer.numbers[1];
        *pending = (unsigned int)answer.numbers[2];
        *failed = (unsigned int)answer.numbers[3];
    }
    return status;
}

struct field_value {
    unsigned int field, scope;
    long long timestamp, latency;
    unsigned int type;
    result status;
    union {
        double real;
        unsigned int number;
        unsigned long long large;
    } value;
};

EXPORT result nvmlDeviceGetFieldValues(device gpu, int count, struct field_value *values)
{
    struct answer answer;
    for (int index = 0; index < count; index++) {
        struct field_value *value = values + index;
        result status = ASK(&answer, NUMBER(gpu), value->field);
        if (status != SUCCESS)
            return status;
        value->type = (unsigned int)answer.numbers[0];
        value->status = (result)answer.numbers[1];
        value->value.large = 0;
        value->value.number = (unsigned int)answer.numbers[2];
    }
    return SUCCESS;
}

struct event {
    device gpu;
    unsigned long long type, data;
    unsigned int gpu_instance, compute_instance;
};

EXPORT result nvmlEventSetCreate(event_set *set)
{
    struct answer answer;
    return put_handle(ASK(&answer, 0), &answer, set);
}

EXPORT result nvmlEventSetFree(event_set set)
{
    struct answer answer;
    return ASK(&answer, NUMBER(set));
}

EXPORT result nvmlDeviceRegisterEvents(device gpu, unsigned long long types, event_set set)
{
    struct answer answer;
    return ASK(&answer, NUMBER(gpu), types, NUMBER(set));
}

EXPORT result nvmlEventSetWait_v2(event_set set, struct event *event, unsigned int timeout_ms)
{
    struct answer answer;
    result status = ASK(&answer, NUMBER(set), timeout_ms);
    if (status == SUCCESS)
        *event = (struct event){(device)(uintptr_t)answer.numbers[0], answer.numbers[1], answer.numbers[2],
                                (unsigned int)answer.numbers[3], (unsigned int)answer.numbers[4]};
    return status;
}

struct process {
    unsigned int pid;
    unsigned long long memory;
    unsigned int gpu_instance, compute_instance;
};

EXPORT result nvmlDeviceGetComputeRunningProcesses_v3(device gpu, unsigned int *count, struct process *processes)
{
    struct answer answer;
    result status = ASK(&answer, NUMBER(gpu));
    if (status != SUCCESS)
        return status;
    unsigned int room = *count;
    *count = (unsigned int)answer.numbers[0];
    if (*count > room)
        return INSUFFICIENT_SIZE;
    for (unsigned int index = 0; index < *count; index++)
        processes[index] = (struct process){(unsigned int)answer.numbers[1 + index], 0, ~0U, ~0U};
    return SUCCESS;
}
