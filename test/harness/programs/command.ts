// The command petstore as a child process, in an empty folder of its own.
import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { listening, makeKey as makeKeyBy } from './instance.ts'
import { collect, type Ended, killHard } from './processes.ts'
import { shellWord } from '../../../src/contract/text/shell-word.ts'
import { Commands, type InProcessOptions, petstore } from './in-process-command.ts'
import { WORKERS } from './with-workers.ts'

const inCheckout = (path: string) => fileURLToPath(new URL(`../../../${path}`, import.meta.url))

export const BIN = inCheckout('bin/petstore')

/** The program is found by its name, as where it is installed: hints say `petstore`. */
export const SEARCH_PATH = `${dirname(BIN)}${delimiter}${process.env['PATH']}`

/** What `bin/petstore` ends in, without its check that this Node.js starts, which takes a quarter of a command's time. */
const LAUNCHED = [
  inCheckout('node_modules/.bin/node'),
  '--max-semi-space-size=8',
  '--disable-sigusr1',
  inCheckout('bin/petstore.js'),
]

export interface RunOptions {
  env?: Record<string, string>
  /** For standard input. */
  input?: string | Buffer
  /** Words before the program, such as one that limits it. */
  wrap?: readonly string[]
  /** A listening socket that it inherits as systemd would pass it. */
  socket?: number
}

/** Tells the program that follows that the socket is meant for it; exec keeps the process id. */
const PASS_SOCKET = ['/bin/sh', '-c', 'LISTEN_PID=$$ exec "$0" "$@"']

/** Creates a folder for what several tests of this process use, and returns its path; it is removed when the process ends. */
export function folderUntilExit(): string {
  const path = mkdtempSync(join(tmpdir(), 'petstore-test-'))
  process.once('exit', () => rmSync(path, { recursive: true }))
  return path
}

/** The end of the last command that was begun in this process. */
let turn: Promise<unknown> = Promise.resolve()

/** Whether script(1) of util-linux can give a command a terminal here; that of other systems takes other words. */
export const hasTerminal = spawnSync('script', ['--version']).stdout?.includes('util-linux')

/** A folder with no .env and no data, where commands run; nothing of the tester's own settings gets through. */
export class Folder implements AsyncDisposable {
  readonly path: string
  /** Commands in this process, in this folder. */
  readonly commands = new Commands((words, options) => this.runInProcess(words, options))
  readonly #program: readonly string[]
  readonly #env: Record<string, string>
  readonly #children: ChildProcess[] = []

  private constructor(path: string, program: readonly string[], env: Record<string, string>) {
    this.path = path
    this.#program = program
    this.#env = env
  }

  /** The program is what the words of a command are put after; `env` has variables for all its runs. */
  static async create(
    program: readonly string[] = LAUNCHED,
    env: Record<string, string> = program === LAUNCHED ? { PETSTORE_CALLED_AS: BIN } : {},
  ): Promise<Folder> {
    return new Folder(await mkdtemp(join(tmpdir(), 'petstore-test-')), program, env)
  }

  at(name: string): string {
    return join(this.path, name)
  }

  /** Writes a file, and returns its path. */
  write(name: string, content: string | Buffer): string {
    // Whatever the tester's umask is, others can't change a .env file.
    writeFileSync(this.at(name), content, { mode: 0o644 })
    return this.at(name)
  }

  /** The names of the files and folders in it, sorted. */
  names(): string[] {
    return readdirSync(this.path).toSorted()
  }

  start(words: readonly string[], { env = {}, wrap = [], socket }: RunOptions = {}): ChildProcess {
    const [program = '', ...rest] = [...wrap, ...(socket === undefined ? [] : PASS_SOCKET), ...this.#program, ...words]
    const child = spawn(program, rest, {
      cwd: this.path,
      env: { PATH: SEARCH_PATH, ...WORKERS, ...this.#env, ...(socket !== undefined && { LISTEN_FDS: '1' }), ...env },
      stdio: ['pipe', 'pipe', 'pipe', ...(socket === undefined ? [] : [socket])],
    })
    this.#children.push(child)
    return child
  }

  /** Runs the words, which a shell splits, on a terminal. */
  startOnTerminal(words: string, env: Record<string, string> = {}): ChildProcessWithoutNullStreams {
    const child = spawn(
      'script',
      ['--quiet', '--return', '--command', `exec ${shellWord(BIN)} ${words}`, '/dev/null'],
      {
        cwd: this.path,
        env: { PATH: SEARCH_PATH, TERM: 'xterm', ...env },
      },
    )
    this.#children.push(child)
    return child
  }

  async run(words: readonly string[], options: RunOptions = {}): Promise<Ended> {
    const child = this.start(words, options)
    const ended = collect(child)
    child.stdin!.on('error', () => {}).end(options.input ?? '')
    return ended
  }

  /** Runs today's command in this process, a fifth of the time that `run` takes. There is one working directory: calls take turns. */
  runInProcess(words: readonly string[], options: InProcessOptions = {}): ReturnType<typeof petstore> {
    const run = turn.then(async () => {
      const directory = process.cwd()
      process.chdir(this.path)
      try {
        return await petstore(words, options)
      } finally {
        process.chdir(directory)
      }
    })
    turn = run.catch(() => {})
    return run
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#children.map(killHard))
    await rm(this.path, { recursive: true })
  }
}

/** Runs a command on a terminal, where each question gets its answer; of several, the next one each time. A store may be created. */
export function atTerminal(folder: Folder, words: string, answers: Record<string, string | string[]>): Promise<Ended> {
  const child = folder.startOnTerminal(words)
  let seen = ''
  child.stdout.on('data', (text: Buffer) => {
    seen += text.toString()
    for (const [question, answer] of Object.entries<string | string[]>({ '[y/N] ': 'y\r', ...answers })) {
      if (!seen.endsWith(question)) continue
      seen = ''
      child.stdin.write(typeof answer === 'string' ? answer : answer.shift()!)
    }
  })
  return collect(child)
}

export interface Served {
  url: string
  adminUrl: string | undefined
  child: ChildProcess
  /** What it logged so far, a parsed line each. */
  lines: Record<string, unknown>[]
  ended: Promise<Ended>
}

/** Runs `petstore serve` on a free port; resolves when it listens. */
export async function serve(folder: Folder, options: RunOptions = {}): Promise<Served> {
  const child = folder.start(['serve'], { ...options, env: { PORT: '0', ...options.env } })
  const ended = collect(child)
  const lines: Record<string, unknown>[] = []
  const { url, admin } = await listening(child, lines)
  return { url, adminUrl: admin, child, lines, ended }
}

/** An account and a key in the database of this folder or of DATABASE_URL, beside a running service or without one. */
export function makeKey(folder: Folder, env: Record<string, string> = {}): Promise<{ id: string; key: string }> {
  return makeKeyWith((words, input) =>
    folder.runInProcess(words, { env: { PETSTORE_ENVIRONMENT: 'staging', ...env }, input }),
  )
}

/** The same with the program of this folder. */
export function makeKeyByProgram(folder: Folder, options: RunOptions = {}): Promise<{ id: string; key: string }> {
  const env = { PETSTORE_ENVIRONMENT: 'staging', ...options.env }
  return makeKeyWith((words, input) => folder.run(words, { ...options, env, input }))
}

function makeKeyWith(
  command: (words: readonly string[], input: string) => Promise<Pick<Ended, 'code' | 'stdout' | 'stderr'>>,
): Promise<{ id: string; key: string }> {
  return makeKeyBy(async (words, input = '') => {
    const { stdout, stderr, code } = await command(words, input)
    if (code !== 0) throw new Error(stderr)
    return stdout
  })
}

/** What it logged, but for what it says of a slow machine. */
export function messages({ lines }: Served): string[] {
  return lines.map(({ msg }) => String(msg)).filter((message) => !message.includes('still being purged'))
}
