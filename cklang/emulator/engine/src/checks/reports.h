// SPDX-License-Identifier: MIT
//
// What becomes of a check's report. As a rule it ends the launch. With a file of suppressions (CKLANG_SUPPRESSIONS)
// those that it names are ignored, and with a file for reports (CKLANG_REPORTS) each goes there once, as a line of
// JSON, and the kernel goes on.
#pragma once

#include "core/fault.h"

namespace ckemu {

struct Device;

/// Whether a kernel may go on after a report.
bool reports_may_pass();

/// Decides about a report of a check in `wave` at `code`; true if the kernel goes on.
bool passes(const Fault& fault, const Wave& wave, const Code& code);

/// Decides about a report that is of no single instruction; true if the launch is taken as good.
bool passes(const Fault& fault, const Program& program);

/// Decides about a report that is of no kernel, but of what the host does; true if that is taken as good.
bool passes(const Fault& fault);

/// Reports what is wrong with a call of the host, while `memory` is checked: it goes on, and its error, if it returns
/// one, is often not looked at. A process that hosts the emulator asks for errors itself.
void report_call(const Message& text, u64 address);

/// Writes down a fault that ends a launch, if reports are written down.
void write_down(const Fault& fault, const Program& program);

}  // namespace ckemu
