// How email addresses are compared, in every engine and wherever else one is a key.

/** Returns the same text for addresses that differ only in case: they are one account. */
export function foldEmail(email: string): string {
  return email.toLowerCase()
}
