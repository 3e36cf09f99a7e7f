export function drawGrowth(_results: unknown): string { return '' }
