# SPDX-License-Identifier: Apache-2.0
# Makes the public enums (kvreg-errors.h) from proto/error.def: awk -f gen-errors.awk error.def

function words(line,   m) {
	sub(/^[A-Z]+\(/, "", line)
	return line
}

function open_enum(name) {
	printf "\nenum %s {\n", name
}

BEGIN {
	FS = ", *"
	print "/* SPDX-License-Identifier: Apache-2.0 */"
	print "/* Made from proto/error.def; do not edit. Numbers never change their meaning. */"
	print "#ifndef KVREG_ERRORS_H"
	print "#define KVREG_ERRORS_H"
	section = ""
}

/^(CLASS|STAGE|CODE)\(/ {
	kind = $0
	sub(/\(.*/, "", kind)
	if (kind != section) {
		if (section != "")
			print "};"
		open_enum("kvreg_" tolower(kind))
		section = kind
	}
	line = words($0)
	n = split(line, f, /, */)
	name = f[2]
	sub(/\).*/, "", name)
	if (kind == "CODE") {
		meaning = line
		sub(/^[^"]*"/, "", meaning)
		sub(/".*/, "", meaning)
		printf "\t/** %s; the call returns %s */\n", meaning, f[4] == "0" ? "0" : "-" f[4]
		printf "\tKVREG_E_%s = %d,\n", name, f[1]
	} else {
		printf "\tKVREG_%s_%s = %d,\n", kind, name, f[1]
	}
}

END {
	print "};"
	print "\n#endif"
}
