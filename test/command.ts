// The command petstore as a child process, in an empty folder of its own.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { WORKERS } from './with-workers.ts'

export const BIN = fileURLToPath(new URL('../bin/petstore', import.meta.url))

/** The program is found by its name, as where it is installed: hints say `petstore`. */
export const SEARCH_PATH = `${dirname(BIN)}${delimiter}${process.env['PATH']}`

export interface Ended {
  code: number | null
  signal: NodeJS.Signals | null
  stdout: string
  stderr: string
}

export interface RunOptions {
  env?: Record<string, string>
  /** For standard input. */
  input?: string
  /** Words before the program, such as one that limits it. */
  wrap?: readonly string[]
  /** A listening socket that it inherits as systemd would pass it. */
  socket?: number
}

/** Tells the program that follows that the socket is meant for it; exec keeps the process id. */
const PASS_SOCKET = ['/bin/sh', '-c', 'LISTEN_PID=$$ exec "$0" "$@"']

/** A folder with no .env and no data, where commands run; nothing of the tester's own settings gets through. */
export class Folder implements AsyncDisposable {
  readonly path: string
  readonly #program: readonly string[]
  readonly #children: ChildProcess[] = []

  private constructor(path: string, program: readonly string[]) {
    this.path = path
    this.#program = program
  }

  /** The program is what the words of a command are put after. */
  static async create(program: readonly string[] = [BIN]): Promise<Folder> {
    return new Folder(await mkdtemp(join(tmpdir(), 'petstore-test-')), program)
  }

  start(words: readonly string[], { env = {}, wrap = [], socket }: RunOptions = {}): ChildProcess {
    const [program = '', ...rest] = [...wrap, ...(socket === undefined ? [] : PASS_SOCKET), ...this.#program, ...words]
    const child = spawn(program, rest, {
      cwd: this.path,
      env: { PATH: SEARCH_PATH, ...WORKERS, ...(socket !== undefined && { LISTEN_FDS: '1' }), ...env },
      stdio: ['pipe', 'pipe', 'pipe', ...(socket === undefined ? [] : [socket])],
    })
    this.#children.push(child)
    return child
  }

  async run(words: readonly string[], options: RunOptions = {}): Promise<Ended> {
    const child = this.start(words, options)
    const ended = collect(child)
    child.stdin!.on('error', () => {}).end(options.input ?? '')
    return ended
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const running = this.#children.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null)
    await Promise.all(
      running.map((child) => {
        child.kill('SIGKILL')
        return once(child, 'close')
      }),
    )
    await rm(this.path, { recursive: true })
  }
}

/** Everything a child says until it ends. */
export async function collect(child: ChildProcess): Promise<Ended> {
  const ended = { code: null, signal: null, stdout: '', stderr: '' } as Ended
  child.stdout!.on('data', (text: Buffer) => (ended.stdout += text.toString()))
  child.stderr!.on('data', (text: Buffer) => (ended.stderr += text.toString()))
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
  return { ...ended, code, signal }
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
  let rest = ''
  const listening = new Promise<Record<string, unknown>>((resolve, reject) => {
    child.stdout!.on('data', (text: Buffer) => {
      const parts = (rest + text.toString()).split('\n')
      rest = parts.pop()!
      for (const part of parts) {
        const line = JSON.parse(part) as Record<string, unknown>
        lines.push(line)
        if (line['msg'] === 'listening') resolve(line)
      }
    })
    void ended.then(({ stderr }) => reject(new Error(`petstore serve ended: ${stderr}`)))
  })
  const { url, admin } = (await listening) as { url: string; admin?: string }
  return { url, adminUrl: admin, child, lines, ended }
}

const PASSWORD = 'correct horse battery'

/** An account and a key from the command line, beside a running service or without one; a new database is for staging. */
export async function makeKey(folder: Folder, { env, ...rest }: RunOptions = {}): Promise<{ id: string; key: string }> {
  const options = { ...rest, env: { PETSTORE_ENVIRONMENT: 'staging', ...env } }
  const email = `someone-${process.hrtime.bigint()}@example.com`
  await folder.run(['account', 'create', email, '--password-stdin'], { ...options, input: PASSWORD })
  const { stdout, stderr } = await folder.run(
    ['key', 'create', '--account', email, '--name', 'test', '--json'],
    options,
  )
  if (stdout === '') throw new Error(stderr)
  return JSON.parse(stdout) as { id: string; key: string }
}
