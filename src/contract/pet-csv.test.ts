// How an animal is written as a row of CSV.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { samplePet } from '../../test/harness/databases/sample-pet.ts'
import { CSV_COLUMNS, csvLine } from './pet-csv.ts'
import { INT64_MIN } from './int64.ts'
import type { Pet, PetStatus } from './pets.ts'

it('A row of CSV has the name in quotes, its own quotes doubled, and the other columns as they are', () => {
  const rows: Record<string, Partial<Pet>> = {
    '1,"Rex",3,sold': { id: 1n, name: 'Rex', categoryId: 3n, status: 'sold' },
    [`2,"a ""b"",\n'c'",${INT64_MIN},pending`]: {
      id: 2n,
      name: 'a "b",\n\'c\'',
      categoryId: INT64_MIN,
      status: 'pending',
    },
  }
  assert.ok(CSV_COLUMNS.join().startsWith('id,name,categoryId,status'))
  const unknown = { ...samplePet, id: 3n, status: 'on "hold"; later' as PetStatus }
  assert.match(csvLine(unknown, ';'), /^3;"[^"]*";\d+;"on ""hold""; later"/, 'a status of a newer program')
  for (const [row, pet] of Object.entries(rows)) {
    const line = csvLine({ ...samplePet, id: 0n, ...pet })
    assert.equal(line.slice(0, row.length), row)
  }
})
