// A proxy in front of a database that fails as networks do: it loses an answer, holds it back, goes silent, or is away.
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

export interface HeldAnswer {
  /** Resolves once the database has answered. */
  arrived: Promise<void>
  release(): void
}

export interface CuttingProxy extends AsyncDisposable {
  /** The database's address, through the proxy. */
  url: string
  /** The next request reaches the database; its answer never comes back, and the connection is closed or reset. */
  cutNextAnswer(how?: 'closed' | 'reset'): void
  /** The next request reaches the database; its answer, or the next one with this text, waits here until it is released. */
  holdNextAnswer(containing?: string): HeldAnswer
  /** The connections open now go silent in both directions, as after a failover without a word. New ones work. */
  silence(): void
  /** From now on no statement is passed on or answered; logging in works, as at a paused PgBouncer. */
  holdStatements(): void
  passStatements(): void
  /** From now on every connection is broken off, the open ones too. */
  goAway(): void
  comeBack(): void
  /** Connections open to the proxy now, and made to it so far. */
  connections(): { open: number; made: number }
}

/** What becomes of the bytes of an answer. */
type Deliver = (client: Socket, bytes: string | Buffer) => void

export async function startCuttingProxy(databaseUrl: string): Promise<CuttingProxy> {
  const target = new URL(databaseUrl)
  const clients = new Map<Socket, { deliver: Deliver; silent: boolean }>()
  let next: Deliver | undefined
  let sought: { text: string; deliver: Deliver } | undefined
  let away = false
  let holds = false
  let made = 0
  const proxy = createServer((client) => {
    made += 1
    if (away) {
      client.destroy()
      return
    }
    const database = connect(Number(target.port), target.hostname)
    const state = { deliver: ((to, bytes) => to.write(bytes)) as Deliver, silent: false }
    clients.set(client, state)
    client.on('data', (bytes) => {
      if (state.silent || (holds && isStatement(bytes))) return
      state.deliver = next ?? state.deliver
      next = undefined
      database.write(bytes)
    })
    database.on('data', (bytes) => {
      if (sought !== undefined && bytes.includes(sought.text)) {
        state.deliver = sought.deliver
        sought = undefined
      }
      if (!state.silent) state.deliver(client, bytes)
    })
    for (const [one, other] of [
      [client, database],
      [database, client],
    ] as const) {
      // What one said last still reaches the other.
      one.on('close', () => other.destroySoon())
      one.on('error', () => other.destroy())
    }
    client.on('close', () => clients.delete(client))
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const url = new URL(databaseUrl)
  url.port = String((proxy.address() as AddressInfo).port)
  // What fails on purpose has the time limits of the service, unless a test chooses others.
  url.search = ''
  const breakAll = () => {
    for (const client of clients.keys()) client.destroy()
  }
  return {
    url: url.href,
    cutNextAnswer(how = 'closed') {
      next = (client) => (how === 'closed' ? client.destroy() : client.resetAndDestroy())
    },
    holdNextAnswer(containing) {
      const [arrived, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      const hold: Deliver = (client, bytes) => {
        arrived.resolve()
        void released.promise.then(() => client.write(bytes))
      }
      if (containing === undefined) next = hold
      else sought = { text: containing, deliver: hold }
      return { arrived: arrived.promise, release: released.resolve }
    },
    silence() {
      for (const state of clients.values()) state.silent = true
    },
    holdStatements() {
      holds = true
    },
    passStatements() {
      holds = false
    },
    goAway() {
      away = true
      breakAll()
    },
    comeBack() {
      away = false
    },
    connections: () => ({ open: clients.size, made }),
    async [Symbol.asyncDispose]() {
      breakAll()
      proxy.close()
      await once(proxy, 'close')
    },
  }
}

/** Whether these bytes begin with a message of the protocol that parses, binds or runs a statement. */
function isStatement(bytes: string | Buffer): boolean {
  return ['P', 'B', 'Q'].includes(bytes.toString('latin1').charAt(0))
}
