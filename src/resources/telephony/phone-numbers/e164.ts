import type { Finding } from "../../../lib/errors.ts";
import { err, ok, type Result } from "../../../lib/result.ts";

/** A country code and a number with up to 15 digits in total (ITU-T E.164, section 6.2.1). */
const E164 = /^\+\d{1,15}$/;

/**
 * Converts a national or international number to E.164. The number must be valid in the numbering plan of the country.
 *
 * Loads the numbering plans on first use. They take about 20 ms and 2 MiB, which a gateway without telephony never needs. It loads
 * the full plans, because the smaller set only checks lengths.
 */
export async function toE164(countryCode: string, phoneNumber: string): Promise<Result<string, Finding>> {
  const plans = await import("libphonenumber-js/max");
  if (!plans.isSupportedCountry(countryCode))
    return err({ path: "countryCode", message: "must be a country with phone numbers" });
  const number = plans.parsePhoneNumberFromString(phoneNumber, {
    defaultCountry: countryCode,
    extract: false,
  });
  if (!number || number.ext !== undefined)
    return err({ path: "phoneNumber", message: "must be a phone number without other text" });
  const isOfCountry = number.countryCallingCode === plans.getCountryCallingCode(countryCode);
  // When countries share a calling code, the library picks the first match. Setting the country makes it check this one.
  number.country = countryCode;
  if (!isOfCountry || !number.isValid() || !E164.test(number.number))
    return err({ path: "phoneNumber", message: `must be a valid phone number of ${countryCode}` });
  return ok(number.number);
}
