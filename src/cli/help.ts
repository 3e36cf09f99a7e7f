// Help leads with examples: most people look for a line to copy. It names the program as it was called. For a word that is
// mistyped, it suggests the nearest one.
import { VERSION } from '../contract/operations.ts'
import type { Command } from './command.ts'

export function overview(commands: readonly Command[], program: string): string {
  const rows = [
    ...commands.filter(({ hidden }) => !hidden).map(({ name, summary }) => [name, summary] as const),
    ['help [COMMAND]', 'Show this page, or the help of a command or of a group such as key'] as const,
    ['--version', 'Show the version of the interface'] as const,
  ]
  const examples = [
    'petstore serve --port 8080',
    'petstore account create you@example.com --password-stdin < password.txt',
    'petstore key create --account you@example.com --name laptop --expires 90d',
  ]
  return [
    `petstore ${VERSION}: a store's animals over HTTP`,
    ...section('Examples', asCalled(examples, program)),
    ...section('Commands', columns(rows)),
    '',
    'Settings are read from flags, environment variables and the file .env in the working directory, in this order.',
  ].join('\n')
}

/** The help of commands that share their first word. */
export function groupHelp(commands: readonly Command[], program: string): string {
  const [group = ''] = commands[0]!.name.split(' ')
  return [
    `petstore ${group}: ${commands.map(({ name }) => name.slice(group.length + 1)).join(', ')}`,
    ...section(
      'Examples',
      asCalled(
        commands.map(({ examples }) => examples[0]!),
        program,
      ),
    ),
    ...section('Commands', columns(commands.map(({ name, summary }) => [name, summary]))),
    '',
    `More: ${program} help ${commands[0]!.name}`,
  ].join('\n')
}

export function helpFor({ name, summary, takes, options, examples }: Command, program: string): string {
  const rows = Object.entries(options).flatMap(([option, { value, meaning, notes }]) => {
    const usage = value === undefined ? `--${option}` : `--${option} ${value}`
    return notes === undefined ? [[usage, meaning] as const] : [[usage, meaning] as const, ['', notes] as const]
  })
  return [
    `petstore ${name}: ${summary}`,
    ...section('Examples', asCalled(examples, program)),
    ...section('Usage', [`  ${program} ${[name, ...takes].join(' ')}${rows.length > 0 ? ' [OPTIONS]' : ''}`]),
    ...(rows.length > 0 ? section('Options', columns(rows)) : []),
  ].join('\n')
}

function section(title: string, lines: readonly string[]): string[] {
  return ['', title, ...lines]
}

function asCalled(examples: readonly string[], program: string): string[] {
  return examples.map((example) => `  ${example.replace(/(?<=^|\s)petstore(?= )/, () => program)}`)
}

function columns(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`)
}

/** Suggests the known word that is nearest to a mistyped one; empty if none is near: at most one letter in three may differ. */
export function didYouMean(word: string, known: readonly string[]): string {
  const [best] = known
    .map((candidate) => ({ candidate, far: distance(word, candidate) }))
    .toSorted((a, b) => a.far - b.far)
  const isNear = best !== undefined && best.far <= Math.max(1, Math.floor(best.candidate.length / 3))
  return isNear ? ` Did you mean ${best.candidate}?` : ''
}

/** How many letters must be added, removed, replaced or swapped with their neighbour (optimal string alignment). */
function distance(from: string, to: string): number {
  let [before, last]: [number[], number[]] = [[], Array.from({ length: to.length + 1 }, (_, index) => index)]
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row]
    for (let column = 1; column <= to.length; column += 1) {
      const same = from[row - 1] === to[column - 1]
      const swapped = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]
      current[column] = Math.min(
        last[column]! + 1,
        current[column - 1]! + 1,
        last[column - 1]! + (same ? 0 : 1),
        swapped ? before[column - 2]! + 1 : Number.POSITIVE_INFINITY,
      )
    }
    ;[before, last] = [last, current]
  }
  return last[to.length]!
}
