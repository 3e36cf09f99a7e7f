// How an animal is written as a row of CSV.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { CSV_HEADER, csvLine } from './pet-csv.ts'
import { INT64_MIN } from './int64.ts'

it('A row of CSV has the name in quotes, its own quotes doubled, and all else as it is', () => {
  assert.equal(CSV_HEADER, 'id,name,categoryId,status')
  const rows = {
    '1,"Rex",3,sold': { id: 1n, name: 'Rex', categoryId: 3n, status: 'sold' },
    [`2,"a ""b"",\n'c'",${INT64_MIN},available`]: {
      id: 2n,
      name: 'a "b",\n\'c\'',
      categoryId: INT64_MIN,
      status: 'available',
    },
  } as const
  for (const [line, pet] of Object.entries(rows)) assert.equal(csvLine(pet), line)
})
