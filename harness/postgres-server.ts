// A real PostgreSQL 18 for tests, from npm, on any machine and as any user. Gone when the process that asked is gone.
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

export interface PostgresServer {
  /** The address of its own database, `postgres`. */
  url: string
  /** Ends it as a power failure would, without a word to its clients. */
  stop(): Promise<void>
  start(): Promise<void>
  /** Lets it hang: connections stay open and nothing answers. */
  pause(): Promise<void>
  resume(): Promise<void>
  /** Ends it for good and removes its files. */
  end(): Promise<void>
}

/**
 * With `tls` it takes encrypted connections too, with the certificate of test-certificate.ts. A setting such as
 * `fsync=on` comes on top of those that make tests fast.
 */
export async function startPostgres(...words: ('tls' | `${string}=${string}`)[]): Promise<PostgresServer> {
  // In a process group of its own: a Ctrl-C at the tests must not end it before it has cleaned up.
  const keeper = spawn(process.execPath, [fileURLToPath(new URL('postgres-keeper.ts', import.meta.url)), ...words], {
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  })
  const lines = createInterface({ input: keeper.stdout })[Symbol.asyncIterator]()
  const gone = new Promise<void>((resolve) => {
    keeper.once('exit', () => resolve())
  })
  const nextLine = async () => {
    const { value, done } = await lines.next()
    if (done) throw new Error('the PostgreSQL for tests did not come up; its reason is above')
    return value
  }
  const tell = (command: string) => async () => {
    keeper.stdin.write(command + '\n')
    await nextLine()
  }
  const url = await nextLine()
  // It must not keep a process alive that has nothing else to do.
  keeper.unref()
  for (const stream of [keeper.stdin, keeper.stdout]) (stream as unknown as { unref(): void }).unref()
  return {
    url,
    stop: tell('stop'),
    start: tell('start'),
    pause: tell('pause'),
    resume: tell('resume'),
    async end() {
      keeper.ref()
      keeper.stdin.end()
      await gone
    },
  }
}
