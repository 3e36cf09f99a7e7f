// Animals on the wire: a NewPet as JSON, and a Pet from JSON, with exact integers both ways.
import { type NewPet, type Pet, PET_FIELDS } from './contract.ts'
import type { Json } from './exact-json.ts'

const FIELDS = Object.entries(PET_FIELDS)

/** Renders an animal without JSON.stringify, which refuses a bigint. Leaves out absent fields, and fields that an animal does not have. */
export function renderNewPet(newPet: NewPet): string {
  const parts = FIELDS.filter(([name]) => name !== 'id').flatMap(([name, { type, always }]) => {
    const value = newPet[name as keyof NewPet]
    if (value === undefined && !always) return []
    const json = type === 'bigint' ? String(exactInteger(name, value as bigint)) : JSON.stringify(value)
    return json === undefined ? [] : [`"${name}":${json}`]
  })
  return `{${parts.join(',')}}`
}

/** Returns the value as a bigint. Throws a TypeError for a number that is not a safe integer: the caller may have rounded it. */
export function exactInteger(name: string, value: number | bigint): bigint {
  if (typeof value === 'bigint') return value
  if (Number.isSafeInteger(value)) return BigInt(value)
  throw new TypeError(
    `${name} must be a bigint or a safe integer, got ${typeof value === 'number' ? `the number ${value}` : typeof value}.`,
  )
}

/** Returns undefined for a value that is not an animal. Drops fields that this version of the client does not know. */
export function parsePet(value: Json | undefined): Pet | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const pet: Record<string, Json> = {}
  for (const [name, { type, always }] of FIELDS) {
    const field = value[name]
    if (field === undefined && !always) continue
    // Checks only the type: a later version of the service may have more statuses.
    if (typeof field !== type) return undefined
    pet[name] = field!
  }
  return pet as object as Pet
}

export function parsePets(value: Json | undefined): Pet[] | undefined {
  if (!Array.isArray(value)) return undefined
  const pets = value.map(parsePet)
  return pets.every((pet) => pet !== undefined) ? pets : undefined
}
