/* SPDX-License-Identifier: MIT
 *
 * The argument of a kernel of rows, as the host shim writes it and the device reads it. Fills include
 * it and have no headers of C: long has 64 bits on host and device. */
#pragma once


#define CK_ROWWISE_MAX_AXES 5
#define CK_ROWWISE_MAX_READS 16
#define CK_ROWWISE_MAX_OUTPUTS 8

typedef struct
{
    unsigned long data; /* an address: of global memory on the device */
    long row_stride[CK_ROWWISE_MAX_AXES];
    long stride[CK_ROWWISE_MAX_AXES];
} ck_row_tensor;

typedef struct
{
    long length; /* of a row */
    unsigned count; /* of all rows */
    unsigned rows[CK_ROWWISE_MAX_AXES];
    unsigned elements[CK_ROWWISE_MAX_AXES];
    unsigned vectors; /* a bit for each output: rows are contiguous */
    unsigned linear;  /* a bit for each output: a row has one stride */
    unsigned whole;   /* results are contiguous, and rows are whole: they fill the registers that
                         hold them, or, where each element is computed by itself, are vectors */
    ck_row_tensor reads[CK_ROWWISE_MAX_READS];
    ck_row_tensor outputs[CK_ROWWISE_MAX_OUTPUTS];
} ck_row_args;
