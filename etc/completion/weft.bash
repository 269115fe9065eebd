# bash completion of weft; made by: weft help --completion
_weft() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} w i skip= words=()
    local first="status health congestion top counters alarm silence maintenance isolate db node port link drain route whatif reroute blueprint resweep export event sweep finding group sim mad api help"
    local -A second=([counters]="list" [alarm]="show ack silence" [silence]="add end" [isolate]="release exclude include" [db]="status check" [link]="drain undrain" [node]="drain undrain" [route]="show compute adaptive quality job" [blueprint]="show accept learn set strike save" [sim]="show link cable node switch hosts host adapter guid key trap set sm traffic receiver errors module device play loss")
    local -A options=(
        ["status"]="--watch --wait"
        ["health"]="--watch --limit --since --focus --all --devices"
        ["congestion"]="--watch --limit --focus"
        ["top"]="--watch --limit --since --until --by --focus"
        ["counters"]="--watch --limit --since --until --step --counter --by --vl --peaks --focus"
        ["counters list"]=""
        ["alarm"]="--watch --limit --severity --focus"
        ["alarm show"]="--watch"
        ["alarm ack"]="--note"
        ["alarm silence"]="--reason --until --owner --for"
        ["silence"]="--watch"
        ["silence add"]="--reason --until --focus --all --rule --owner --for"
        ["silence end"]=""
        ["maintenance"]="--reason --until --focus --owner --for"
        ["isolate"]="--watch --reason --dry-run --anyway"
        ["isolate release"]=""
        ["isolate exclude"]="--reason --until --for"
        ["isolate include"]=""
        ["db status"]="--watch"
        ["db check"]=""
        ["node"]="--watch --limit --type --role --name"
        ["port"]="--watch --limit --focus"
        ["link"]="--watch --limit --down"
        ["link drain"]="--reason --check --no-wait"
        ["link undrain"]="--check --no-wait"
        ["node drain"]="--reason --check --no-wait"
        ["node undrain"]="--check --no-wait"
        ["drain"]="--watch"
        ["route show"]="--since --until"
        ["route compute"]="--engine --fail --dump-lft"
        ["route adaptive"]="--watch --limit"
        ["route quality"]="--watch --engine --fail"
        ["route job"]="--fail"
        ["whatif"]="--engine --fail --drain --add"
        ["reroute"]="--wait --apply"
        ["blueprint show"]="--watch"
        ["blueprint accept"]="--check --no-wait"
        ["blueprint learn"]="--check --no-wait"
        ["blueprint set"]="--check --force --no-wait"
        ["blueprint strike"]="--apply --no-wait"
        ["blueprint save"]=""
        ["resweep"]="--wait"
        ["export"]="--to --rail --match"
        ["event"]="--limit --follow --kind --since --until --focus"
        ["sweep"]="--watch --limit"
        ["finding"]="--watch --limit --severity"
        ["group"]="--watch --limit"
        ["sim show"]="--watch"
        ["sim link"]="--times --gap --for --width --speed"
        ["sim cable"]=""
        ["sim node"]="--for --mute"
        ["sim switch"]="--for --mute"
        ["sim hosts"]="--spread --paths"
        ["sim host"]="--for --orderly"
        ["sim adapter"]="--for"
        ["sim guid"]=""
        ["sim key"]="--protect --lease"
        ["sim trap"]=""
        ["sim set"]=""
        ["sim sm"]="--priority --state --sm-key --sm-guid --frozen --silent --quiet --poll --misses"
        ["sim traffic"]="--hosts --receivers --load --shift --fan --level --window --on --off --seed --as"
        ["sim receiver"]="--takes"
        ["sim errors"]="--symbol --ber --raw-ber --uncorrectable --recovery --receive --remote --integrity --overrun --discard --vl15"
        ["sim module"]="--celsius --rx --tx --fault"
        ["sim device"]="--celsius --fans --supplies"
        ["sim play"]="--check"
        ["sim loss"]=""
        ["mad"]="--watch --limit"
        ["api"]=""
        ["help"]=""
    )
    local all="--socket --fabric --output --timeout --no-color --no-header --help --version"
    case $prev in
    -s | --socket) compopt -o default; COMPREPLY=(); return ;;
    -f | --fabric) COMPREPLY=(); return ;;
    -o | --output) COMPREPLY=($(compgen -W "table json csv" -- "$cur")); return ;;
    --timeout) COMPREPLY=(); return ;;
    -n | --limit) COMPREPLY=(); return ;;
    --type) COMPREPLY=($(compgen -W "ca switch router" -- "$cur")); return ;;
    --role) COMPREPLY=(); return ;;
    --name) COMPREPLY=(); return ;;
    --reason) COMPREPLY=(); return ;;
    --engine) COMPREPLY=(); return ;;
    --fail) COMPREPLY=(); return ;;
    --drain) COMPREPLY=(); return ;;
    --add) COMPREPLY=(); return ;;
    --dump-lft) compopt -o default; COMPREPLY=(); return ;;
    --to) compopt -o default; COMPREPLY=(); return ;;
    --rail) COMPREPLY=(); return ;;
    --match) COMPREPLY=(); return ;;
    --kind) COMPREPLY=(); return ;;
    --since) COMPREPLY=(); return ;;
    --severity) COMPREPLY=($(compgen -W "info warning error minor major critical" -- "$cur")); return ;;
    --until) COMPREPLY=(); return ;;
    --step) COMPREPLY=(); return ;;
    --counter) COMPREPLY=(); return ;;
    --by) COMPREPLY=(); return ;;
    --focus) COMPREPLY=(); return ;;
    --rule) COMPREPLY=(); return ;;
    --note) COMPREPLY=(); return ;;
    --owner) COMPREPLY=(); return ;;
    --times) COMPREPLY=(); return ;;
    --gap) COMPREPLY=(); return ;;
    --for) COMPREPLY=(); return ;;
    --mute) COMPREPLY=(); return ;;
    --width) COMPREPLY=($(compgen -W "1x 2x 4x 8x 12x" -- "$cur")); return ;;
    --speed) COMPREPLY=($(compgen -W "SDR DDR QDR FDR EDR HDR NDR" -- "$cur")); return ;;
    --protect) COMPREPLY=($(compgen -W "0 1 2 3" -- "$cur")); return ;;
    --lease) COMPREPLY=(); return ;;
    --priority) COMPREPLY=(); return ;;
    --state) COMPREPLY=($(compgen -W "not-active discovering standby master" -- "$cur")); return ;;
    --sm-key) COMPREPLY=(); return ;;
    --sm-guid) COMPREPLY=(); return ;;
    --poll) COMPREPLY=(); return ;;
    --misses) COMPREPLY=(); return ;;
    --spread) COMPREPLY=(); return ;;
    --paths) COMPREPLY=(); return ;;
    --hosts) COMPREPLY=(); return ;;
    --receivers) COMPREPLY=(); return ;;
    --load) COMPREPLY=(); return ;;
    --shift) COMPREPLY=(); return ;;
    --fan) COMPREPLY=(); return ;;
    --level) COMPREPLY=(); return ;;
    --window) COMPREPLY=(); return ;;
    --on) COMPREPLY=(); return ;;
    --off) COMPREPLY=(); return ;;
    --seed) COMPREPLY=(); return ;;
    --as) COMPREPLY=(); return ;;
    --takes) COMPREPLY=(); return ;;
    --symbol) COMPREPLY=(); return ;;
    --ber) COMPREPLY=(); return ;;
    --raw-ber) COMPREPLY=(); return ;;
    --uncorrectable) COMPREPLY=(); return ;;
    --recovery) COMPREPLY=(); return ;;
    --receive) COMPREPLY=(); return ;;
    --remote) COMPREPLY=(); return ;;
    --integrity) COMPREPLY=(); return ;;
    --overrun) COMPREPLY=(); return ;;
    --discard) COMPREPLY=(); return ;;
    --vl15) COMPREPLY=(); return ;;
    --celsius) COMPREPLY=(); return ;;
    --rx) COMPREPLY=(); return ;;
    --tx) COMPREPLY=(); return ;;
    --fans) COMPREPLY=(); return ;;
    --supplies) COMPREPLY=(); return ;;
    esac
    for ((i = 1; i < COMP_CWORD; i++)); do
        w=${COMP_WORDS[i]}
        if [ -n "$skip" ]; then skip=; continue; fi
        case $w in
        -s | --socket | -f | --fabric | -o | --output | --timeout | -n | --limit | --type | --role | --name | --reason | --engine | --fail | --drain | --add | --dump-lft | --to | --rail | --match | --kind | --since | --severity | --until | --step | --counter | --by | --focus | --rule | --note | --owner | --times | --gap | --for | --mute | --width | --speed | --protect | --lease | --priority | --state | --sm-key | --sm-guid | --poll | --misses | --spread | --paths | --hosts | --receivers | --load | --shift | --fan | --level | --window | --on | --off | --seed | --as | --takes | --symbol | --ber | --raw-ber | --uncorrectable | --recovery | --receive | --remote | --integrity | --overrun | --discard | --vl15 | --celsius | --rx | --tx | --fans | --supplies) skip=1 ;;
        -*) ;;
        *) words+=("$w") ;;
        esac
    done
    local name=${words[0]}
    [ ${#words[@]} -gt 1 ] && [ -n "${options[$name ${words[1]}]+x}" ] && name="$name ${words[1]}"
    if [[ $cur == -* ]]; then
        [ -n "$name" ] && all="$all ${options[$name]}"
        COMPREPLY=($(compgen -W "$all" -- "$cur"))
    elif [ ${#words[@]} -eq 0 ] || [ "${words[0]}" = help ]; then
        COMPREPLY=($(compgen -W "$first" -- "$cur"))
    elif [ ${#words[@]} -eq 1 ] && [ -n "${second[${words[0]}]}" ]; then
        COMPREPLY=($(compgen -W "${second[${words[0]}]}" -- "$cur"))
    else
        case $name in
        route* | whatif | export | blueprint*) compopt -o default ;;
        esac
    fi
}
complete -F _weft weft
