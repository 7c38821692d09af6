# The vocabulary of the scripts that the supervisor runs.
b=/.dmsim/busybox
here=/.dmsim

put() { # SOURCE PATH MODE: a file, in place of what is there
    "$b" mkdir -p "${2%/*}/"
    drop "$2"
    "$b" cat "$1" >"$2"
    "$b" chmod "$3" "$2"
}

drop() { # PATH...: take away what is there; what something is mounted on stays
    "$b" rm -rf "$@" 2>/dev/null || true
}

modules() { # FILE: be /proc/modules from now on, also where the kernel has none
    if [ ! -e /proc/modules ]; then
        "$b" mkdir -p "$here/proc"
        "$b" mount -t proc proc "$here/proc"
        "$b" mount -t tmpfs tmpfs /proc
        for entry in "$here"/proc/[!0-9]*; do
            "$b" ln -s "$entry" "/proc/${entry##*/}"
        done
        : >/proc/modules
    fi
    "$b" mount --bind "$1" /proc/modules
}

no_modules() { # a kernel without modules
    if [ -e /proc/modules ]; then "$b" mount -t proc -o subset=pid proc /proc; fi
}

on_path() { # PROGRAM DIRECTORY...: where the image has it is not on every world's PATH
    program=$1
    shift
    for directory; do
        if [ -x "$directory/${program##*/}" ]; then return 0; fi
    done
    "$b" mkdir -p /usr/bin
    "$b" ln -s "$program" "/usr/bin/${program##*/}"
}

give_back() { # everything in the shared folders to whoever has made them, so that he can remove it
    for name in run sys proc; do
        "$b" umount -l "/host/$name" 2>/dev/null
    done
    "$b" chown -R "$("$b" stat -c %u "$here")" "$here" /host /run /sys 2>/dev/null
}
