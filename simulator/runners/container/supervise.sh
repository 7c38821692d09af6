# The first process of a container: makes what cannot be mounted from outside, runs the program, notes how the world ended.
#
# It is told what to do by lines on the pipe `control`, and answers by lines on the pipe `status`:
#   do NAME      run a script of the runner's        did NAME | failed NAME
#   run          run the program (the script start)  exit STATUS
#   kill SIGNAL  send the program a signal, if there is one
# While the program runs another process listens in its place; `ended`, which the supervisor tells itself, calls that back
# when it has done all it was told before.
# When nobody holds the other end of `control` any more it kills the program and ends.
. /.dmsim/functions

say() { echo "$*" 1<>"$here/status"; } # to nobody, if there is nobody to hear it

signal() { # SIGNAL: to the program, as soon as it has begun; to nobody, if there is none
    while [ -e "$here/pid" ] && [ ! -s "$here/pid" ]; do "$b" sleep 0.01; done
    if read -r pid 2>/dev/null <"$here/pid"; then "$b" kill "-$1" "$pid"; fi
}

obey() { # until there is a program to run (0), nobody to obey (1), or no program any more (2)
    while read -r word rest <&3; do
        case $word in
        do)
            (set -eu && . "$here/$rest")
            case $? in 0) say "did $rest" ;; *) say "failed $rest" ;; esac
            ;;
        kill) signal "$rest" ;;
        run) return 0 ;;
        ended) return 2 ;;
        esac
    done
    return 1
}

exec 3<"$here/control"
while obey; do
    : >"$here/pid"
    {
        obey
        if [ $? -eq 1 ]; then signal KILL; fi
    } &
    "$b" sh "$here/start"
    status=$?
    "$b" rm -f "$here/pid"
    echo ended 1<>"$here/control"
    say "exit $status"
    wait "$!"
done
give_back
