# The first process of a container: makes what cannot be mounted from outside, runs the program, notes how the world ended.
#
# It is told what to do by lines on the pipe `control`, and answers by lines on the pipe `status`:
#   do NAME      run a script of the runner's        did NAME | failed NAME
#   run          run the program (the script start)  exit STATUS
#   kill SIGNAL  send the program a signal
# While the program runs another process listens in its place; `ended`, which the supervisor tells itself, calls that back
# when it has done all it was told before.
# When nobody holds the other end of `control` any more it kills the program and ends.
. /.dmsim/functions

say() { echo "$*" 1<>"$here/status"; } # to nobody, if there is nobody to hear it

obey() { # until there is a program to run (0), nobody to obey (1), or no program any more (2)
    while read -r word rest <&3; do
        case $word in
        do)
            (set -eu && . "$here/$rest")
            case $? in 0) say "did $rest" ;; *) say "failed $rest" ;; esac
            ;;
        kill) "$b" kill "-$rest" "$("$b" cat "$here/pid")" ;;
        run) return 0 ;;
        ended) return 2 ;;
        esac
    done
    return 1
}

exec 3<"$here/control"
while obey; do
    {
        obey
        if [ $? -eq 1 ]; then "$b" kill -KILL "$("$b" cat "$here/pid")"; fi
    } &
    "$b" sh "$here/start"
    status=$?
    echo ended 1<>"$here/control"
    say "exit $status"
    wait "$!"
done
give_back
