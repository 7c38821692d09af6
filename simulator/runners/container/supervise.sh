# The first process of a container: makes what cannot be mounted from outside, runs the program, notes how the world ended.
#
# It is told what to do by lines on the pipe `control`, and answers by lines on the pipe `status`. When nobody holds the
# other end of `control` any more it kills the program and ends.
b=/.dmsim/busybox
here=/.dmsim

say() { echo "$*" >"$here/status"; }

act() { # NAME: run a script of the runner's
    if "$b" sh -eu "$here/$1"; then say "did $1"; else say "failed $1"; fi
}

obey() {
    while read -r word rest <&3; do
        case $word in
        do) act "$rest" ;;
        kill) "$b" kill "-$rest" "$("$b" cat "$here/pid")" ;;
        end) return 0 ;;
        esac
    done
    return 1
}

exec 3<"$here/control"
act prepare
read -r word rest <&3 || exit 1
case $word in
run)
    { obey || "$b" kill -KILL "$("$b" cat "$here/pid")"; } &
    "$b" sh "$here/start"
    say "exit $?"
    "$b" kill "$!"
    ;;
hold) obey || exit 1 ;;
*) exit 1 ;;
esac
act note
# The status pipe's reader removes the container.
read -r word rest <&3
