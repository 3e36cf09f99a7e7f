// Rendered answers of the two reads, each kept under its address for as long as the store's version stays the same.
import { isRefusal, type Refusal } from '../contract/errors.ts'
import type { Store } from '../store/store.ts'
import type { Bytes, Route } from './call.ts'

/** An answer's content, ready to be sent. */
export interface Page {
  route: Route
  body: Bytes
  etag: string
  /** ETag and Link: those that a 304 carries too. */
  headers: readonly string[]
  /** All headers that tell of the content. */
  contentHeaders: readonly string[]
}

const MAX_PAGES = 1024
const MAX_BYTES = 8 * 1024 * 1024
const MAX_ADDRESS = 200

export class PageCache {
  readonly #store: Pick<Store, 'version'>
  readonly #pages = new Map<string, Page>()
  /** Pages on their way from the store. */
  readonly #reading = new Map<string, Promise<Page | Refusal>>()
  /** Addresses that were asked for, whatever the version. */
  readonly #asked = new Set<string>()
  #bytes = 0
  #version: number | undefined

  constructor(store: Pick<Store, 'version'>) {
    this.#store = store
  }

  /** Asks the store for its version: what has come by now finds nothing older. */
  refresh(): void {
    const version = this.#store.version()
    if (version !== undefined && version === this.#version) return
    this.#version = version
    this.#pages.clear()
    this.#reading.clear()
    this.#bytes = 0
  }

  /** The version that all pages in here belong to. */
  get version(): number | undefined {
    return this.#version
  }

  find(address: string): Page | undefined {
    return this.#pages.get(address)
  }

  /**
   * A page that is not in here, for a request that came with this version. Where it was asked for before, it is read once
   * for all who ask in the meantime, and kept for who asks next; where the store has no version, it is read once for those
   * who came before the reading began. Who walks through a list asks for each page once; keeping those would only make work
   * for the garbage collector (a third of such a request).
   */
  read(address: string, version: number | undefined, readPage: () => Promise<Page | Refusal>): Promise<Page | Refusal> {
    // What is read later than it was asked for is newer, but nobody knows of which version it is.
    if (version !== this.#version || this.#isNew(address)) return readPage()
    return this.#reading.get(address) ?? this.#readAndKeep(address, version, readPage)
  }

  #isNew(address: string): boolean {
    if (this.#asked.has(address)) return false
    if (this.#asked.size >= MAX_PAGES) this.#asked.clear()
    if (address.length <= MAX_ADDRESS) this.#asked.add(address)
    return true
  }

  async #readAndKeep(address: string, version: number | undefined, readPage: () => Promise<Page | Refusal>): Promise<Page | Refusal> {
    const reading = readPage()
    this.#reading.set(address, reading)
    try {
      const page = await reading
      if (version !== undefined && version === this.#version && !isRefusal(page)) this.#keep(address, page)
      return page
    } finally {
      if (this.#reading.get(address) === reading) this.#reading.delete(address)
    }
  }

  #keep(address: string, page: Page): void {
    if (this.#pages.has(address)) return
    this.#pages.set(address, page)
    this.#bytes += sizeOf(address, page)
    while (this.#pages.size > MAX_PAGES || this.#bytes > MAX_BYTES) this.#dropOldest()
  }

  #dropOldest(): void {
    const [address, page] = this.#pages.entries().next().value!
    this.#pages.delete(address)
    this.#bytes -= sizeOf(address, page)
  }
}

function sizeOf(address: string, page: Page): number {
  return address.length + page.body.length
}
