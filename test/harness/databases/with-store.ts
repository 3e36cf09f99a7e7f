// A store for as long as a piece of work takes.
import { readConfig } from '../../../src/config.ts'
import { openStore } from '../../../src/store/opening/open-store.ts'
import type { OpenOptions, Store } from '../../../src/store/store.ts'

export async function withStore<T>(url: string, work: (store: Store) => Promise<T>, options?: OpenOptions): Promise<T> {
  const store = await openStore(readConfig({ database: url }, {}).database, options)
  try {
    return await work(store)
  } finally {
    await store.close()
  }
}
