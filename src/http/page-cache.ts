// Rendered answers of the two reads, each kept under its address for as long as the store's version stays the same.
import type { PetStore } from '../store/store.ts'
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
  readonly #pets: Pick<PetStore, 'version'>
  readonly #pages = new Map<string, Page>()
  /** Addresses that were asked for, whatever the version: a page is kept only when it is asked for again. */
  readonly #asked = new Set<string>()
  #bytes = 0
  #version: number | undefined

  constructor(pets: Pick<PetStore, 'version'>) {
    this.#pets = pets
  }

  /** Asks the store for its version: what has come by now finds nothing older. */
  refresh(): void {
    const version = this.#pets.version()
    if (version === this.#version) return
    this.#version = version
    this.#pages.clear()
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
   * `version` is that of the request the page was read for: what was read is at least as new. Who walks through a list
   * asks for each page once; keeping those would only make work for the garbage collector (a third of such a request).
   */
  keep(address: string, version: number | undefined, page: Page): void {
    if (version === undefined || version !== this.#version || this.#pages.has(address) || address.length > MAX_ADDRESS) return
    if (!this.#asked.has(address)) {
      if (this.#asked.size >= MAX_PAGES) this.#asked.clear()
      this.#asked.add(address)
      return
    }
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
