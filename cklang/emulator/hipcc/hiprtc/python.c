/* SPDX-License-Identifier: MIT
 * The interpreter that hiprtc of the HIP library starts: the one that built the program.
 */
extern const char cklang_python[];
const char cklang_python[] = CKLANG_PYTHON;
