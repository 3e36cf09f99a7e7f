// Renders the help. Examples come first: most people look for a line to copy.
import { VERSION } from '../contract/operations.ts'
import type { Command } from './command.ts'
import { alignColumns } from './terminal.ts'

export function overview(commands: readonly Command[], program: string): string {
  const rows = [
    ...commands.map(({ name, summary }) => [name, summary]),
    ['help [COMMAND]', 'Show this page, or the help of a command or of a group such as key'],
    ['--version', 'Show the version of this program'],
  ]
  const examples = [
    'petstore serve --port 8080',
    'petstore account create you@example.com --password-stdin < password.txt',
    'petstore key create --account you@example.com --name laptop --expires 90d',
  ]
  return [
    `petstore ${VERSION}: a store's animals over HTTP`,
    ...exampleSection(examples, program),
    ...section('Commands', alignColumns(rows)),
    '',
    'Settings are read from flags, environment variables and the file .env in the working directory, in this order.',
  ].join('\n')
}

export function groupHelp(commands: readonly Command[], program: string): string {
  const [group = ''] = commands[0]!.name.split(' ')
  const examples = commands.map((command) => command.examples[0]!)
  const rows = commands.map(({ name, summary }) => [name, summary])
  return [
    `petstore ${group}: ${commands.map(({ name }) => name.slice(group.length + 1)).join(', ')}`,
    ...exampleSection(examples, program),
    ...section('Commands', alignColumns(rows)),
    '',
    `More: ${program} help ${commands[0]!.name}`,
  ].join('\n')
}

export function helpFor({ name, summary, takes = [], options, examples }: Command, program: string): string {
  const rows = Object.entries(options).flatMap(([option, { value, meaning, notes }]) => {
    const usage = value === undefined ? `--${option}` : `--${option} ${value}`
    return notes === undefined
      ? [[usage, meaning]]
      : [
          [usage, meaning],
          ['', notes],
        ]
  })
  return [
    `petstore ${name}: ${summary}`,
    ...exampleSection(examples, program),
    ...section('Usage', [`${program} ${[name, ...takes].join(' ')}${rows.length > 0 ? ' [OPTIONS]' : ''}`]),
    ...(rows.length > 0 ? section('Options', alignColumns(rows)) : []),
  ].join('\n')
}

function section(title: string, lines: readonly string[]): string[] {
  return ['', title, ...lines.map((line) => `  ${line}`)]
}

/** Names the program as the user called it. */
function exampleSection(examples: readonly string[], program: string): string[] {
  const lines = examples.map((example) => example.replace(/(?<=^|[\s(])petstore(?= )/, () => program))
  return section('Examples', lines)
}
