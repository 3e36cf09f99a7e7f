// The limit of connections if several processes share it. Each process leases slots, and admits a connection by itself while
// one of its slots is free. Without a free slot it asks the first process, which recalls unused slots from all others;
// requests on the connection wait meanwhile. So no more connections are kept than the limit allows, and below it none is
// refused, unless a process hangs that has the free slots or must grant them. An instance of one process leaves the limit to Node.
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { withinTime } from '../timing.ts'

/** How long the first process waits for slots that it recalls, and a process for its answer. */
const RECALL_WITHIN_MS = 1000
const LEASE_WITHIN_MS = 3000

interface Holder {
  slots: number
  giveBack: () => number | Promise<number>
  isAsked: boolean
}

/** Leases the slots of an instance to its processes, in the first process. */
export class ConnectionLeases {
  readonly #limit: number
  readonly #processes: number
  readonly #holders = new Map<unknown, Holder>()
  #recall = Promise.resolve(0)
  #nextRecall: Promise<number> | undefined
  /** How often slots were leased. */
  #grants = 0

  constructor(limit: number, processes: number) {
    this.#limit = limit
    this.#processes = processes
  }

  /** Adds a process, without slots. `giveBack` gives back unused slots and returns how many. */
  add(process: unknown, giveBack: Holder['giveBack']): void {
    this.#holders.set(process, { slots: 0, giveBack, isAsked: false })
  }

  /** Leases an equal share, if that is free, to a process that begins to accept connections: an earlier lease would lie idle. */
  leaseShare(process: unknown): number {
    return this.#add(process, Math.min(this.#free, Math.floor(this.#limit / this.#processes)))
  }

  /** Leases `wanted` slots, and a part of those that are free beyond that. Resolves with 0 if none is free in any process. */
  async lease(process: unknown, wanted: number): Promise<number> {
    if (this.#free < wanted) {
      // Others that wait for the same recall may take all that it brings, a process gives back half of its unused slots, and one
      // that slots are leased to meanwhile may not need all of them.
      let [given, before] = [0, 0]
      do {
        before = this.#grants
        given = await this.#recallUnused()
      } while ((given > 0 || this.#grants > before) && this.#free === 0)
    }
    const spare = Math.max(0, this.#free - wanted)
    return this.#add(process, Math.min(this.#free, wanted) + Math.floor(spare / this.#processes))
  }

  /** Returns 0 if the process has ended meanwhile. */
  #add(process: unknown, slots: number): number {
    const holder = this.#holders.get(process)
    if (holder === undefined) return 0
    holder.slots += slots
    if (slots > 0) this.#grants += 1
    return slots
  }

  /** Frees the slots of a process that has ended. */
  forget(process: unknown): void {
    this.#holders.delete(process)
  }

  get #free(): number {
    return this.#limit - this.#holders.values().reduce((sum, { slots }) => sum + slots, 0)
  }

  /**
   * Resolves with the number of slots that were given back, after a recall that began after this call: an earlier one may have
   * missed a slot that came free. It begins in a later turn, when all that was leased is sent.
   */
  #recallUnused(): Promise<number> {
    return (this.#nextRecall ??= this.#recall.then(async () => {
      await setImmediate()
      this.#nextRecall = undefined
      return (this.#recall = this.#recallFromAll())
    }))
  }

  /** Skips processes that have not answered an earlier recall: they hang, and delay only one. Skips those without slots, too. */
  async #recallFromAll(): Promise<number> {
    let sum = 0
    const answering = [...this.#holders.values()].filter(({ slots, isAsked }) => slots > 0 && !isAsked)
    const answers = answering.map(async (holder) => {
      holder.isAsked = true
      const given = await holder.giveBack()
      holder.slots -= given
      sum += given
      holder.isAsked = false
    })
    await Promise.allSettled(answers.map((answer) => withinTime(answer, RECALL_WITHIN_MS)))
    return sum
  }
}

/** Called for each refused connection: the limit is reached, or the first process does not answer. */
export type OnRefused = (reason: 'limit' | 'no answer') => void

/** Keeps or refuses the connections of one process. */
export class ConnectionLimit {
  /** How many connections this process may keep, and how many it keeps. */
  #slots = 0
  #kept = 0
  readonly #lease: (wanted: number) => Promise<number>
  /** Connections that are neither kept nor refused yet, oldest first, with their waiting requests. */
  readonly #undecided = new Map<Socket, (() => void)[]>()
  #isAsking = false

  constructor(lease: (wanted: number) => Promise<number>) {
    this.#lease = lease
  }

  /** Adds leased slots. */
  extend(slots: number): void {
    this.#slots += slots
    this.#fillSlots()
  }

  watch(server: Server, onRefused: OnRefused): void {
    server.on('connection', (socket: Socket) => {
      this.#undecided.set(socket, [])
      socket.once('close', () => this.#undecided.delete(socket))
      this.#fillSlots()
      if (this.#undecided.size > 0 && !this.#isAsking) void this.#askForSlots(onRefused)
    })
  }

  /** Returns whether the connection is kept. If that is not decided yet, calls `serve` when it is kept. */
  isKept(socket: Socket, serve: () => void): boolean {
    const waiting = this.#undecided.get(socket)
    waiting?.push(serve)
    return waiting === undefined
  }

  /**
   * Gives back half of the unused slots, at least one if there is one: the next connections need none of the first process. In a later
   * turn, since a lease that came before the recall may still be a pending promise.
   */
  async giveBack(): Promise<number> {
    await setImmediate()
    const given = Math.ceil((this.#slots - this.#kept) / 2)
    this.#slots -= given
    return given
  }

  #fillSlots(): void {
    for (const [socket, waiting] of this.#undecided) {
      if (this.#kept === this.#slots) return
      this.#undecided.delete(socket)
      this.#kept += 1
      socket.once('close', () => {
        this.#kept -= 1
        this.#fillSlots()
      })
      for (const serve of waiting) serve()
    }
  }

  /** Asks one question at a time: the next one covers the connections that were opened meanwhile. */
  async #askForSlots(onRefused: OnRefused): Promise<void> {
    this.#isAsking = true
    while (this.#undecided.size > 0) {
      const asked = [...this.#undecided.keys()]
      // A lease that comes too late counts too: the first process regards it as given.
      const leasing = this.#lease(asked.length).then((leased) => {
        this.extend(leased)
        return leased
      })
      const leased = await withinTime(leasing, LEASE_WITHIN_MS).catch(() => undefined)
      if (leased !== undefined && leased > 0) continue
      for (const socket of asked.filter((each) => this.#undecided.delete(each))) {
        socket.destroy()
        onRefused(leased === undefined ? 'no answer' : 'limit')
      }
    }
    this.#isAsking = false
  }
}
