/* SPDX-License-Identifier: Apache-2.0 */
/* device.h - a model's memory on a GPU. */
#ifndef OPJIT_CLI_MODEL_DEVICE_H
#define OPJIT_CLI_MODEL_DEVICE_H

#include "frontend/cli/model/model.h"

typedef struct cli_device cli_device;
/* Brings all that the compiled model's dispatches work on to the context's device, and binds it to them.  To be closed
 * also where it fails. */
opjit_status opjit_cli_device_open(cli_model *m, cli_device **out);
/* Runs a dispatch there. */
opjit_status opjit_cli_device_dispatch(cli_model *m, const cli_device *d, const cli_command *c);
/* Waits, and brings back the resource that c prints or writes. */
opjit_status opjit_cli_device_fetch(cli_model *m, const cli_device *d, const cli_command *c);
void opjit_cli_device_close(cli_model *m, cli_device *d); /* NULL is fine */

#endif
