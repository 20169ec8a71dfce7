/** SVG paths of the providers' logos in a box of 24 × 24, by preset. The build creates this module. */
declare module "virtual:logos" {
  export const LOGOS: Readonly<Record<string, string>>;
}
