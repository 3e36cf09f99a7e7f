// A command in this process: quick to run, with a clock, an input and terminals of the test's choice.
import assert from 'node:assert/strict'
import { Readable, Writable } from 'node:stream'
import { run } from '../../../src/cli/run.ts'

export interface InProcessOptions {
  input?: string
  clock?: () => number
  /** Whether a person looks at the output. */
  isTTY?: boolean
  /** What that person types at a terminal, instead of `input`. */
  typed?: string
  env?: Record<string, string>
  /** Called with each text on standard output, and on standard error, before the command goes on. */
  onPrint?: (text: string) => void
  onReport?: (text: string) => void
  stopSignal?: () => Promise<string>
}

export async function petstore(
  words: readonly string[],
  {
    input = '',
    clock = Date.now,
    typed,
    isTTY = typed !== undefined,
    env = {},
    onPrint = () => {},
    onReport = () => {},
    stopSignal = () => new Promise(() => {}),
  }: InProcessOptions = {},
) {
  const written = { stdout: '', stderr: '' }
  const collect = (name: keyof typeof written) => {
    const stream = new Writable({
      write(chunk: Buffer, _encoding, done) {
        written[name] += chunk.toString()
        const told = name === 'stderr' ? onReport : onPrint
        told(chunk.toString())
        done()
      },
    })
    return Object.assign(stream, { isTTY })
  }
  const terminal = {
    env,
    envFile: {},
    program: 'petstore',
    stdin: Object.assign(Readable.from([Buffer.from(typed ?? input)]), { isTTY: typed !== undefined }),
    stdout: collect('stdout'),
    stderr: collect('stderr'),
  }
  const code = await run([...words], {
    ...terminal,
    pid: process.pid,
    nodeVersion: process.version,
    clock,
    stopSignal,
    kill: () => {},
  })
  return { code, ...written }
}

/** Stops a service as soon as it has printed that it serves: a start may take long on a slow machine. */
export function stopOnceServing(): Required<Pick<InProcessOptions, 'onPrint' | 'stopSignal'>> {
  const { promise, resolve } = Promise.withResolvers<string>()
  return { onPrint: () => resolve('SIGINT'), stopSignal: () => promise }
}

type Outcome = Awaited<ReturnType<typeof petstore>>

/** A command as it is typed, to be split at its spaces, or its words. */
export type Line = string | readonly string[]

export function wordsOf(line: Line): readonly string[] {
  return typeof line === 'string' ? line.split(' ') : line
}

/** Commands of which a test says how they end. */
export class Commands {
  readonly #run: (words: readonly string[], options?: InProcessOptions) => Promise<Outcome>

  constructor(execute: (words: readonly string[], options?: InProcessOptions) => Promise<Outcome>) {
    this.#run = execute
  }

  run(line: Line, options?: InProcessOptions): Promise<Outcome> {
    return this.#run(wordsOf(line), options)
  }

  /** Fails unless the command ends with this code. */
  async call(code: number, line: Line, options?: InProcessOptions): Promise<Outcome> {
    const ended = await this.run(line, options)
    assert.equal(ended.code, code, `${wordsOf(line).join(' ')}: ${ended.stderr}`)
    return ended
  }

  async json<T = Record<string, unknown>>(line: Line, options?: InProcessOptions): Promise<T> {
    return JSON.parse((await this.call(0, [...wordsOf(line), '--json'], options)).stdout) as T
  }

  /** Fails unless the command ends with this code, prints nothing, and its message is this text or matches this pattern. */
  async refused(code: number, line: Line, message: string | RegExp, options?: InProcessOptions): Promise<void> {
    const { stdout, stderr } = await this.call(code, line, options)
    assert.equal(stdout, '')
    if (typeof message === 'string') assert.equal(stderr, message)
    else assert.match(stderr, message)
  }
}

/** Commands on a database, with options for all of them. */
export function commandsOn(database: string, common: InProcessOptions = {}): Commands {
  return new Commands((words, { env, ...options } = {}) =>
    petstore(words, { ...common, ...options, env: { DATABASE_URL: database, ...common.env, ...env } }),
  )
}
