// PostgreSQL by Bun.sql.
import { SQL } from 'bun'
import { statementsOf } from './with-postgres.js'

export function open(address) {
  return statementsOf(new SQL(address, { max: 10 }))
}
