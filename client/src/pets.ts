// Animals on the wire: a NewPet as JSON, and a Pet from JSON, with exact integers both ways.
import type { NewPet, Pet, PetStatus } from './contract.ts'
import type { Json } from './exact-json.ts'

/** By hand, since JSON.stringify takes no bigint. A field that is left out stays out. */
export function renderNewPet({ name, categoryId, status }: NewPet): string {
  const fields = [
    ['name', JSON.stringify(name)],
    ['categoryId', String(exactInteger('categoryId', categoryId))],
    ['status', JSON.stringify(status)],
  ] as const
  return `{${fields
    .filter(([, json]) => json !== undefined)
    .map(([field, json]) => `"${field}":${json}`)
    .join(',')}}`
}

/** Refuses a number that may have been rounded before it came here. */
export function exactInteger(name: string, value: number | bigint): bigint {
  if (typeof value === 'bigint') return value
  if (Number.isSafeInteger(value)) return BigInt(value)
  throw new TypeError(
    `${name} must be a bigint or a safe integer, got ${typeof value === 'number' ? `the number ${value}` : typeof value}.`,
  )
}

/** Returns undefined for anything that is not an animal. Fields that this version does not know are left out. */
export function parsePet(value: Json): Pet | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const { id, name, categoryId, status } = value
  if (
    typeof id !== 'bigint' ||
    typeof name !== 'string' ||
    typeof categoryId !== 'bigint' ||
    typeof status !== 'string'
  )
    return undefined
  // A later service may know more statuses; an animal with one of them is still an animal.
  return { id, name, categoryId, status: status as PetStatus }
}

export function parsePets(value: Json): Pet[] | undefined {
  if (!Array.isArray(value)) return undefined
  const pets = value.map(parsePet)
  return pets.every((pet) => pet !== undefined) ? pets : undefined
}
