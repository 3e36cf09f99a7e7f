// The parts of a store that are written once, in SQL that both engines understand. A new resource is an entry here.
import { accountStore } from './account-store-sql.ts'
import { batchStore } from './batches/batch-store.ts'
import { categoryStore } from './category-store.ts'
import { importStore } from './imports.ts'
import { peopleStore } from './people-store.ts'
import type { Sql } from './sql.ts'
import { uploadStore } from './uploads.ts'

export function sharedParts(sql: Sql) {
  return {
    accounts: { ...accountStore(sql), ...peopleStore(sql) },
    batches: batchStore(sql),
    categories: categoryStore(sql),
    imports: importStore(sql),
    uploads: uploadStore(sql),
  }
}
