// Opens the NIC of that name, if there is one.
#include <vipl.h>

int main(int, char** argv) {
  VIP_NIC_HANDLE nic = nullptr;
  return VipOpenNic(argv[1], &nic) == VIP_SUCCESS && VipCloseNic(nic) == VIP_SUCCESS ? 0 : 1;
}
