// npm run drill NAME and npm run bench NAME run a program of this folder; without a name, each lists the programs there are. The
// first line of a program names it and says what it does: `// npm run drill overload: sends …`.
import { spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const [kind, name, ...words] = process.argv.slice(2)
const HEAD = new RegExp(`^// npm run ${kind} ([\\w-]+): ((?:.|\n// )*?)[.:;](?:\\s|$)`)

const programs = new Map<string, { file: string; purpose: string }>()
const search = { cwd: import.meta.dirname, exclude: ['**/node_modules'] }
for (const path of globSync('{drills,bench,generated-clients}/**/*.ts', search).toSorted()) {
  const file = join(import.meta.dirname, path)
  const [, named, purpose] = HEAD.exec(readFileSync(file, 'utf8')) ?? []
  if (named !== undefined) programs.set(named, { file, purpose: purpose!.replaceAll('\n//', '') })
}

const program = programs.get(name ?? '')
if (program === undefined) {
  const rows = [...programs].map(([each, { purpose }]) => `  ${each.padEnd(18)} ${purpose}\n`)
  const problem = name === undefined ? '' : `There is no ${kind} ${name}. `
  process.stderr.write(`${problem}npm run ${kind} NAME runs one of these:\n${rows.join('')}`)
  process.exitCode = name === undefined ? 0 : 1
} else {
  const options = program.file.endsWith('.test.ts') ? ['--test', '--test-timeout=300000'] : []
  // Ctrl-C reaches the program by itself; this process waits for it.
  process.on('SIGINT', () => {})
  process.exitCode = spawnSync(process.execPath, [...options, program.file, ...words], { stdio: 'inherit' }).status ?? 1
}
