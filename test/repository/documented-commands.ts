// The commands in the code blocks of all documents, and how they are run: as they stand there, in a folder like a checkout.
import assert from 'node:assert/strict'
import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from 'node:child_process'
import { globSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { collect, type Ended, keptIn } from '../harness/programs/processes.ts'
import { type Setting, SETTINGS } from '../../src/config.ts'
import { hasTerminal } from '../harness/programs/command.ts'
import { PASSWORD } from '../harness/harness.ts'
import { petstore } from '../harness/programs/in-process-command.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

export interface Block {
  /** Where it stands, such as `docs/recipes.md:10`. */
  place: string
  language: string
  text: string
}

export const BLOCKS: readonly Block[] = globSync('**/*.md', { cwd: ROOT, exclude: ['**/node_modules', '**/vendor'] })
  .toSorted()
  .flatMap((document) => {
    const text = readFileSync(join(ROOT, document), 'utf8')
    return Array.from(text.matchAll(/^```(sh|bash|shell|console|python)\n(.*?)^```$/gms), (match) => ({
      place: `${document}:${text.slice(0, match.index).split('\n').length + 1}`,
      language: match[1]!,
      text: match[2]!,
    }))
  })

const settings = new Set(Object.values<Setting>(SETTINGS).map(({ variable }) => variable))

/** The tester's environment without the files in the home folder, and without settings of the service. */
const withoutSettings = (folder: string) =>
  Object.fromEntries(Object.entries(keptIn(folder)).filter(([name]) => !settings.has(name)))

/** How a language is run. */
const LAUNCH: Record<string, string[]> = { sh: ['sh', '-e', '-c'], python: ['python3', '-c'] }
const ON_TERMINAL = ['script', '--quiet', '--return', '--command', 'exec sh -e -c "$BLOCK"', '/dev/null']

/** Runs a block against this service. Of its text only the addresses and folders are replaced, with those of the test. */
export async function runBlock({ text, language }: Block, service: { url: string; key: string }): Promise<Ended> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'petstore-test-'))
  const at = (name: string) => join(folder.path, name)
  symlinkSync(join(ROOT, 'bin'), at('bin'))
  for (const name of ['data', 'backups', 'srv']) mkdirSync(at(name))
  await petstore(['migrate', '--database', `sqlite:${at('data/petstore.db')}`])
  if (text.includes(' import ')) {
    writeFileSync(at('animals.csv'), 'name,categoryId,status\nRex,3,sold\n')
    writeFileSync(at('animals.jsonl.gz'), gzipSync('{"name":"Mittens","categoryId":7}\n'))
  }
  // Without it, an error that the service answers would be a success of curl.
  writeFileSync(at('.curlrc'), 'fail\nsilent\nshow-error\n')
  // In one pass: the folder for temporary files may itself be below /srv.
  const ours = new Map([
    ['http://127.0.0.1:8080', service.url],
    ['/mnt/backups', at('backups')],
    ['/srv/', `${at('srv')}/`],
  ])
  const replaced = text.replaceAll(/http:\/\/127\.0\.0\.1:8080|\/mnt\/backups|\/srv\//g, (found) => ours.get(found)!)
  const launch =
    LAUNCH[language] ?? assert.fail(`a block of ${language}: write it as one of ${Object.keys(LAUNCH).join()}`)
  const env = {
    ...withoutSettings(folder.path),
    BASE: `${service.url}/v1`,
    KEY: service.key,
    BLOCK: replaced,
  }
  const [program = '', ...words] = asksForPassword(text) ? ON_TERMINAL : [...launch, replaced]
  const child = spawn(program, words, { cwd: folder.path, env })
  if (asksForPassword(text)) answerQuestions(child)
  else child.stdin.end()
  // Waits for the end before the folder is removed.
  return await collect(child)
}

function asksForPassword(text: string): boolean {
  return text.includes('# asks for a password')
}

function answerQuestions({ stdin, stdout }: ChildProcessWithoutNullStreams): void {
  let shown = ''
  stdout.on('data', (chunk: Buffer) => {
    shown += chunk.toString()
    if (!/password.*: $/i.test(shown)) return
    shown = ''
    stdin.write(`${PASSWORD}\r`)
  })
}

/** The first program that the block needs and this machine lacks. */
export function missingProgram({ text, language }: Block): string | undefined {
  if (asksForPassword(text) && !hasTerminal) return 'script of util-linux'
  const needed = [LAUNCH[language]?.[0] ?? 'sh', ...['curl', 'jq'].filter((name) => text.includes(name))]
  return needed.find((name) => spawnSync('sh', ['-c', 'command -v "$0"', name]).status !== 0)
}
