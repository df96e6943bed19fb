/*
 * A library with the interface of libnvidia-ml.so.1, in the functions that the driver calls.
 *
 * It knows nothing of machines. Each function asks one handler, which answers with numbers and a text, and puts the
 * answer where the interface of NVIDIA's library has it: prototypes, structs, their versions, buffers and their sizes.
 */

#ifndef ANSWER_H
#define ANSWER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define VERSION(type, number) ((unsigned int)sizeof(type) | (number##U << 24))

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, INSUFFICIENT_SIZE = 7, VERSION_MISMATCH = 25 };
enum { NUMBERS = 64, TEXT = 256 };

typedef int result;
typedef struct device *device;
typedef struct gpu_instance *gpu_instance;
typedef struct compute_instance *compute_instance;
typedef struct event_set *event_set;

struct answer {
    uint64_t numbers[NUMBERS];
    char text[TEXT];
};

typedef result (*handler)(const char *function, const uint64_t *arguments, struct answer *answer);

#define NUMBER(value) ((uint64_t)(uintptr_t)(value))
#define ASK(answer, ...) ask(__func__, (const uint64_t[]){__VA_ARGS__}, answer)

result ask(const char *function, const uint64_t *arguments, struct answer *answer);

static inline result put_text(result status, const struct answer *answer, char *text, unsigned int length)
{
    if (status != SUCCESS)
        return status;
    if (text == NULL)
        return INVALID_ARGUMENT;
    if (strnlen(answer->text, TEXT) >= length)
        return INSUFFICIENT_SIZE;
    strcpy(text, answer->text);
    return SUCCESS;
}

static inline result put_number(result status, const struct answer *answer, unsigned int *number)
{
    if (status == SUCCESS)
        *number = (unsigned int)answer->numbers[0];
    return status;
}

static inline result put_handle(result status, const struct answer *answer, void *handle)
{
    if (status == SUCCESS)
        *(void **)handle = (void *)(uintptr_t)answer->numbers[0];
    return status;
}

/* The number of handles, and they. As NVIDIA's, it trusts the buffer to have room for all that a profile allows. */
static inline result put_handles(result status, const struct answer *answer, void *handles, unsigned int *count)
{
    if (status != SUCCESS)
        return status;
    *count = (unsigned int)answer->numbers[0];
    for (unsigned int index = 0; index < *count; index++)
        ((void **)handles)[index] = (void *)(uintptr_t)answer->numbers[1 + index];
    return SUCCESS;
}

#endif
