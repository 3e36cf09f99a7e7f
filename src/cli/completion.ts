// petstore completion: prints the completion script of a shell. The script calls `petstore complete` for the words that may
// come next, so that it stays valid when commands change.
import { basename } from 'node:path'
import { fromShellWord, shellWord } from '../contract/shell-word.ts'
import { type Command, findCommand, UsageError } from './command.ts'
import { print } from './terminal.ts'

/** NAME is the name of the program. Each script passes the words up to the cursor, and reads lines of a word, a tab and the word's meaning. */
const SCRIPTS: Record<string, string> = {
  bash: `_petstore() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do COMPREPLY+=("\${line%%$'\\t'*}"); done < <("\${COMP_WORDS[0]/#\\~/$HOME}" complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _petstore NAME`,
  zsh: `#compdef NAME
_petstore() {
  local -a found
  found=("\${(@f)$("\${words[1]}" complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  found=("\${(@)found//:/\\\\:}")
  found=("\${(@)found//$'\\t'/:}")
  _describe petstore found
}
compdef _petstore NAME`,
  fish: `function __petstore_complete
    set -l words (commandline -opc)
    $words[1] complete -- $words[2..] (commandline -ct) 2>/dev/null
end
complete -c NAME -f -a '(__petstore_complete)'`,
}

const SHELLS = Object.keys(SCRIPTS)

/** Returns the commands `completion` and `complete`, which complete the other commands and `completion`. */
export function completionCommands(others: readonly Command[]): readonly Command[] {
  const completion: Command = {
    name: 'completion',
    summary: 'Print the completion script of a shell',
    takes: ['SHELL'],
    choices: SHELLS,
    options: {},
    examples: [
      'source <(petstore completion bash)   # in ~/.bashrc',
      'source <(petstore completion zsh)    # in ~/.zshrc, after compinit',
      'petstore completion fish | source    # in ~/.config/fish/config.fish',
    ],
    async run({ terminal, positionals }) {
      const shell = positionals[0]!
      if (!Object.hasOwn(SCRIPTS, shell))
        throw new UsageError(`SHELL must be ${SHELLS.join(', ')}, got ${JSON.stringify(positionals[0])}.`)
      // The executable may have any name, and be called by its path.
      const name = shellWord(basename(fromShellWord(terminal.program)))
      print(
        terminal,
        SCRIPTS[shell]!.replaceAll('NAME', () => name),
      )
    },
  }
  const complete: Command = {
    name: 'complete',
    summary: 'List the words that may come next, for the completion scripts',
    takes: ['WORD…'],
    options: {},
    examples: ['petstore complete -- key cr'],
    hidden: true,
    async run({ terminal, positionals }) {
      for (const [word, meaning] of candidates([...others, completion], positionals))
        print(terminal, `${word}\t${meaning}`)
    },
  }
  return [completion, complete]
}

type Candidate = readonly [word: string, meaning: string]

/** Returns the completions of the last word, which may be empty. */
function candidates(commands: readonly Command[], words: readonly string[]): Candidate[] {
  const [typed, current = ''] = [words.slice(0, -1), words.at(-1)]
  const before = typed[0] === 'help' ? typed.slice(1) : typed
  const command = findCommand(commands, before)
  const all = command === undefined ? nextWords(commands, typed, before) : ofCommand(command, before)
  return all.filter(([word]) => word.startsWith(current))
}

function nextWords(commands: readonly Command[], typed: readonly string[], before: readonly string[]): Candidate[] {
  const words = new Map<string, string>()
  for (const { name, summary } of commands) {
    const parts = name.split(' ')
    const next = before.every((word, index) => parts[index] === word) ? parts[before.length] : undefined
    if (next !== undefined)
      words.set(next, words.has(next) || parts.length > before.length + 1 ? `Commands of ${next}` : summary)
  }
  if (typed.length === 0) words.set('help', 'Show help')
  return [...words]
}

function ofCommand({ name, takes, choices, options }: Command, before: readonly string[]): Candidate[] {
  const given = before.slice(name.split(' ').length)
  const last = options[given.at(-1)?.replace(/^--/, '') ?? '']
  if (last?.value !== undefined) return (last.choices ?? []).map((choice) => [choice, last.meaning])
  const positionals = given.filter(
    (word, index) => !word.startsWith('-') && options[given[index - 1]?.replace(/^--/, '') ?? '']?.value === undefined,
  )
  const flags = Object.entries(options)
    .filter(([option]) => !given.includes(`--${option}`))
    .map(([option, { meaning }]) => [`--${option}`, meaning] as const)
  return positionals.length < takes.length
    ? [...(choices ?? []).map((choice) => [choice, takes[0]!] as const), ...flags]
    : flags
}
