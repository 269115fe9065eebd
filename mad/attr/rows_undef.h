// SPDX-License-Identifier: Apache-2.0
//
// Ends what rows_struct.h or a part of define.h began.
#undef F
#undef A
#undef S
#undef FC
#undef AC
#undef R
#undef RS
#undef MAD_ROW
#undef MAD_ROW_FITS
