# SPDX-License-Identifier: BSD-3-Clause
"""Every pickle opcode of this Python: "code TAB name TAB first protocol"."""
import pickletools

for opcode in sorted(pickletools.opcodes, key=lambda row: ord(row.code)):
    print(ord(opcode.code), opcode.name, opcode.proto, sep="\t")
