// Help leads with examples: most people look for a line to copy.
import { VERSION } from '../contract/operations.ts'
import type { Command } from './command.ts'

export function overview(commands: readonly Command[]): string {
  const width = Math.max(...commands.map(({ name }) => name.length))
  return [
    `petstore ${VERSION}: a store's animals over HTTP`,
    '',
    'Examples',
    '  petstore serve --port 8080',
    '  petstore account create you@example.com --password-stdin < password.txt',
    '  petstore key create --account you@example.com --name laptop --expires 90d',
    '',
    'Commands',
    ...commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`),
    `  ${'help [COMMAND]'.padEnd(width)}  Show this page, or the help of one command`,
    `  ${'--version'.padEnd(width)}  Show the version of the interface`,
    '',
    'Settings are read from flags, environment variables and a .env file, in this order.',
  ].join('\n')
}

export function helpFor({ name, summary, takes, options, examples }: Command): string {
  const rows = Object.entries(options).map(([option, { value, meaning, notes }]) => ({
    usage: value === undefined ? `--${option}` : `--${option} ${value}`,
    lines: notes === undefined ? [meaning] : [meaning, notes],
  }))
  const width = Math.max(0, ...rows.map(({ usage }) => usage.length))
  return [
    `petstore ${name}: ${summary}`,
    '',
    'Examples',
    ...examples.map((example) => `  ${example}`),
    '',
    'Usage',
    `  petstore ${[name, ...takes].join(' ')}${rows.length > 0 ? ' [OPTIONS]' : ''}`,
    ...(rows.length > 0 ? ['', 'Options'] : []),
    ...rows.flatMap(({ usage, lines }) => lines.map((line, index) => `  ${(index === 0 ? usage : '').padEnd(width)}  ${line}`)),
  ].join('\n')
}
