// A command in this process: quick to run, with a clock, an input and terminals of the test's choice.
import { Readable, Writable } from 'node:stream'
import { run } from '../src/cli/run.ts'

export interface InProcessOptions {
  input?: string
  clock?: () => number
  /** Whether a person looks at the output. */
  isTTY?: boolean
  /** What that person types at a terminal, instead of `input`. */
  typed?: string
  env?: Record<string, string>
  /** Called with each text on standard error, before the command goes on. */
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
    onReport = () => {},
    stopSignal = () => new Promise(() => {}),
  }: InProcessOptions = {},
) {
  const written = { stdout: '', stderr: '' }
  const collect = (name: keyof typeof written) => {
    const stream = new Writable({
      write(chunk: Buffer, _encoding, done) {
        written[name] += chunk.toString()
        if (name === 'stderr') onReport(chunk.toString())
        done()
      },
    })
    return Object.assign(stream, { isTTY })
  }
  const terminal = {
    env,
    envFile: { variables: {}, ignoredLines: [] },
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
